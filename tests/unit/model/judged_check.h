// SPDX-License-Identifier: Apache-2.0
// The findings of a check of `agbox doctor` as one text, for tests of its judge().
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/doctor/findings.h"

namespace agbox {

// "FINDING_VERDICT_OK sentence | remedy" of each finding, each with a newline.
template <class Check>
std::string judged(const Check& check) {
  v1::DiagnoseResponse response;
  Findings findings(response, Check::kName);
  check.judge(findings);
  std::string text;
  for (const v1::Finding& finding : response.findings()) {
    EXPECT_EQ(finding.check(), Check::kName);
    text += v1::FindingVerdict_Name(finding.verdict()).substr(16) + " " + finding.sentence() +
            (finding.remedy().empty() ? "" : " | " + finding.remedy()) + "\n";
  }
  return text;
}

}  // namespace agbox
