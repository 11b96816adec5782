// SPDX-License-Identifier: Apache-2.0
// The guest program, the first process of every sandbox.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "place/local/doctor/local_diagnosis.h"

namespace agbox {

// Does the guest program exist?
struct GuestProgramCheck {
  static constexpr std::string_view kName = "guest-program";
  std::string path;
  bool exists = false;

  static GuestProgramCheck gather(const LocalCheckContext& context) {
    std::error_code problem;
    return {.path = context.guest_program,
            .exists = std::filesystem::is_regular_file(context.guest_program, problem)};
  }

  void judge(Findings& findings) const {
    if (exists) return findings.ok(path + " exists");
    findings.broken(
        "the program that every sandbox begins with is gone, so none can start: " + path,
        std::string(kRestartDaemon));
  }
};

}  // namespace agbox
