// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/finding_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

struct VerdictName {
  v1::FindingVerdict verdict;
  std::string_view text;
  std::string_view plural;
};
constexpr std::array kVerdictNames = {
    VerdictName{v1::FINDING_VERDICT_BROKEN, "broken", "broken"},
    VerdictName{v1::FINDING_VERDICT_WARNING, "warning", "warnings"},
    VerdictName{v1::FINDING_VERDICT_UNKNOWN, "unknown", "unknown"},
    VerdictName{v1::FINDING_VERDICT_OK, "ok", "ok"}};
constexpr std::size_t kVerdictColumn = 9;  // the longest name and two spaces

// A verdict that only a newer daemon knows is "unknown".
std::string_view name_of(v1::FindingVerdict verdict) {
  const auto found = std::ranges::find(kVerdictNames, verdict, &VerdictName::verdict);
  return found == kVerdictNames.end() ? "unknown" : found->text;
}

std::string padded(std::string_view text, std::size_t width) {
  std::string cell(text);
  if (cell.size() < width) cell.append(width - cell.size(), ' ');
  return cell;
}

std::string count_line(const v1::DiagnoseResponse& response) {
  std::string line;
  for (const VerdictName& name : kVerdictNames) {
    const auto count = std::ranges::count_if(response.findings(), [&](const v1::Finding& finding) {
      return name_of(finding.verdict()) == name.text;
    });
    if (count == 0) continue;
    line += (line.empty() ? "" : ", ") + std::to_string(count) + " " +
            std::string(count == 1 ? name.text : name.plural);
  }
  return line + "\n";
}

}  // namespace

std::string findings_text(const v1::DiagnoseResponse& response) {
  std::size_t check_column = 0;
  for (const v1::Finding& finding : response.findings()) {
    check_column = std::max(check_column, printable_line(finding.check()).size() + 2);
  }
  std::string out;
  for (const v1::Finding& finding : response.findings()) {
    out += padded(name_of(finding.verdict()), kVerdictColumn) +
           padded(printable_line(finding.check()), check_column) +
           printable_line(finding.sentence()) + "\n";
    if (finding.remedy().empty()) continue;
    out += std::string(kVerdictColumn, ' ') + "fix: " + printable_line(finding.remedy()) + "\n";
  }
  return out + count_line(response);
}

bool has_broken(const v1::DiagnoseResponse& response) {
  return std::ranges::any_of(response.findings(), [](const v1::Finding& finding) {
    return finding.verdict() == v1::FINDING_VERDICT_BROKEN;
  });
}

}  // namespace agbox::cli
