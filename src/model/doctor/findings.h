// SPDX-License-Identifier: Apache-2.0
// The findings of a diagnosis as they are made: one line for each thing that was looked at, and
// what mends it wherever something is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agbox/v1/service.pb.h"

namespace agbox {

// Words of which findings are made.
inline constexpr std::string_view kRestartDaemon = "systemctl --user restart agboxd";

inline std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

inline std::string counted(std::size_t number, std::string_view one, std::string_view many) {
  return std::to_string(number) + " " + std::string(number == 1 ? one : many);
}

class Findings {
 public:
  void ok(std::string_view check, std::string sentence) {
    add(check, v1::FINDING_VERDICT_OK, std::move(sentence), {});
  }
  void warn(std::string_view check, std::string sentence, std::string remedy) {
    add(check, v1::FINDING_VERDICT_WARNING, std::move(sentence), std::move(remedy));
  }
  void broken(std::string_view check, std::string sentence, std::string remedy) {
    add(check, v1::FINDING_VERDICT_BROKEN, std::move(sentence), std::move(remedy));
  }
  void unknown(std::string_view check, std::string sentence) {
    add(check, v1::FINDING_VERDICT_UNKNOWN, std::move(sentence), {});
  }

  v1::DiagnoseResponse take() { return std::move(response_); }

 private:
  void add(std::string_view check, v1::FindingVerdict verdict, std::string sentence,
           std::string remedy) {
    v1::Finding& finding = *response_.add_findings();
    finding.set_check(std::string(check));
    finding.set_verdict(verdict);
    finding.set_sentence(std::move(sentence));
    finding.set_remedy(std::move(remedy));
  }

  v1::DiagnoseResponse response_;
};

}  // namespace agbox
