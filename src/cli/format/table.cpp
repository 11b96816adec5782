// SPDX-License-Identifier: Apache-2.0
#include "cli/format/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

constexpr std::size_t kGap = 2;
// A cell is not cut to less: that would not say anything.
constexpr std::size_t kNarrowest = 6;
constexpr const char* kCut = "…";

// Continuation bytes of UTF-8 begin with the bits 10.
bool begins_character(char c) {
  return (c & 0xC0) != 0x80;
}

// Characters, not bytes.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::ranges::count_if(cell, begins_character));
}

// Its first characters and the mark of a cut, if it is wider.
std::string cut_to(const std::string& cell, std::size_t width) {
  if (width_of(cell) <= width) return cell;
  std::size_t characters = 0;
  const auto end = std::ranges::find_if(
      cell, [&](char c) { return begins_character(c) && ++characters == width; });
  return std::string(cell.begin(), end) + kCut;
}

// Narrows the widest columns but the first one until all fit, as far as possible.
void fit(std::vector<std::size_t>& widths, std::size_t columns) {
  const auto total = [&widths] {
    return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
  };
  while (total() > columns && widths.size() > 1) {
    const auto widest = std::max_element(widths.begin() + 1, widths.end());
    if (*widest <= kNarrowest) return;
    --*widest;
  }
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::optional<std::size_t> columns) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  if (columns) fit(widths, *columns);
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = cut_to(row[i], widths[i]);
      out += cell;
      if (i + 1 < row.size()) out += std::string(widths[i] - width_of(cell) + kGap, ' ');
    }
    out += "\n";
  }
  return out;
}

}  // namespace agbox::cli
