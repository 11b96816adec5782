// SPDX-License-Identifier: Apache-2.0
// Formats rows of text as columns, two spaces apart. The last column is not padded; cells are
// sanitized for a terminal and joined to one line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace agbox::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { add(std::move(header)); }

  // As many cells as the header has.
  void add(std::vector<std::string> cells);
  // For a terminal of so many columns, long cells are cut, but never those of the first column:
  // they are IDs that the user copies.
  std::string text(std::optional<std::size_t> columns = std::nullopt) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace agbox::cli
