// SPDX-License-Identifier: Apache-2.0
// Runs the checks of `agbox doctor`. They query the engine, the kernel and the store again instead
// of using what the daemon remembers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "async/semaphore.h"
#include "base/result.h"
#include "control/doctor/check_context.h"

namespace agbox {

// The images that the client names; fails if one is not a valid image name.
Result<std::vector<std::string>> parse_diagnose_request(const v1::DiagnoseRequest& request);

class Diagnosis {
 public:
  Diagnosis(ActorServices& services, Directory& directory, DiagnosisOptions options)
      : context_{services, directory, std::move(options)},
        turn_(services.loop.io().get_executor(), 1) {}
  Diagnosis(const Diagnosis&) = delete;

  // One at a time; concurrent callers wait. CANCELLED if the caller is.
  boost::asio::awaitable<Result<v1::DiagnoseResponse>> run(std::vector<std::string> images);

 private:
  CheckContext context_;  // of the current run
  Semaphore turn_;
};

}  // namespace agbox
