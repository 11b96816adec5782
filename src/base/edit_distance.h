// SPDX-License-Identifier: Apache-2.0
// How different two words are, to suggest a name for a mistyped one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace agbox {

// Levenshtein distance: how many characters to insert, remove or replace.
inline std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row.back();
}

}  // namespace agbox
