// SPDX-License-Identifier: Apache-2.0
// The findings of a diagnosis as they are made: one line for each thing that was looked at, and
// what mends it wherever something is wrong.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "agbox/v1/service.pb.h"

namespace agbox {

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
