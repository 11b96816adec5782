// SPDX-License-Identifier: Apache-2.0
#include "cli/format/table.h"

#include <algorithm>
#include <utility>

#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

// Characters, not bytes: continuation bytes of UTF-8 begin with the bits 10.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cell, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      out += row[i] + std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    out += row.back() + "\n";
  }
  return out;
}

}  // namespace agbox::cli
