// SPDX-License-Identifier: Apache-2.0
// Formats rows of text as columns, two spaces apart. The last column is not padded; cells are
// sanitized for a terminal and joined to one line.
#pragma once

#include <string>
#include <vector>

namespace agbox::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { add(std::move(header)); }

  // As many cells as the header has.
  void add(std::vector<std::string> cells);
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace agbox::cli
