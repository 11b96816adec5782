// SPDX-License-Identifier: Apache-2.0
#include "cli/finding_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/printable.h"

namespace agbox::cli {

namespace {

struct Word {
  v1::FindingVerdict verdict;
  std::string_view text;
  std::string_view plural;
};
constexpr std::array kWords = {Word{v1::FINDING_VERDICT_BROKEN, "broken", "broken"},
                               Word{v1::FINDING_VERDICT_WARNING, "warning", "warnings"},
                               Word{v1::FINDING_VERDICT_UNKNOWN, "unknown", "unknown"},
                               Word{v1::FINDING_VERDICT_OK, "ok", "ok"}};
constexpr std::size_t kVerdictColumn = 9;  // the longest word and two spaces

// A verdict of a newer daemon than this program is one that it knows nothing of.
std::string_view word_of(v1::FindingVerdict verdict) {
  const auto found = std::ranges::find(kWords, verdict, &Word::verdict);
  return found == kWords.end() ? "unknown" : found->text;
}

std::string padded(std::string_view text, std::size_t width) {
  std::string cell(text);
  if (cell.size() < width) cell.append(width - cell.size(), ' ');
  return cell;
}

std::string count_line(const v1::DiagnoseResponse& response) {
  std::string line;
  for (const Word& word : kWords) {
    const auto count = std::ranges::count_if(response.findings(), [&](const v1::Finding& finding) {
      return word_of(finding.verdict()) == word.text;
    });
    if (count == 0) continue;
    line += (line.empty() ? "" : ", ") + std::to_string(count) + " " +
            std::string(count == 1 ? word.text : word.plural);
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
    out += padded(word_of(finding.verdict()), kVerdictColumn) +
           padded(printable_line(finding.check()), check_column) +
           printable_line(finding.sentence()) + "\n";
    if (finding.remedy().empty()) continue;
    out +=
        std::string(kVerdictColumn, ' ') + "to mend it: " + printable_line(finding.remedy()) + "\n";
  }
  return out + count_line(response);
}

bool has_broken(const v1::DiagnoseResponse& response) {
  return std::ranges::any_of(response.findings(), [](const v1::Finding& finding) {
    return finding.verdict() == v1::FINDING_VERDICT_BROKEN;
  });
}

}  // namespace agbox::cli
