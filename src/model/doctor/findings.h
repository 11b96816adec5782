// SPDX-License-Identifier: Apache-2.0
// The findings of one check: a sentence each, with a remedy if something is wrong.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agbox/v1/service.pb.h"

namespace agbox {

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
  // Added to the end of the response.
  Findings(v1::DiagnoseResponse& response, std::string_view check)
      : response_(response), check_(check) {}

  void ok(std::string sentence) { add(v1::FINDING_VERDICT_OK, std::move(sentence), {}); }
  void unknown(std::string sentence) { add(v1::FINDING_VERDICT_UNKNOWN, std::move(sentence), {}); }
  void warn(std::string sentence, std::string remedy) {
    add(v1::FINDING_VERDICT_WARNING, std::move(sentence), std::move(remedy));
  }
  void broken(std::string sentence, std::string remedy) {
    add(v1::FINDING_VERDICT_BROKEN, std::move(sentence), std::move(remedy));
  }
  bool empty() const { return is_empty_; }

 private:
  void add(v1::FindingVerdict verdict, std::string sentence, std::string remedy) {
    v1::Finding& finding = *response_.add_findings();
    finding.set_check(std::string(check_));
    finding.set_verdict(verdict);
    finding.set_sentence(std::move(sentence));
    finding.set_remedy(std::move(remedy));
    is_empty_ = false;
  }

  v1::DiagnoseResponse& response_;
  std::string_view check_;
  bool is_empty_ = true;
};

}  // namespace agbox
