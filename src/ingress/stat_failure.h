// SPDX-License-Identifier: Apache-2.0
// In the words that existing clients know.
#pragma once

#include <cctype>
#include <cstring>
#include <string>

namespace agbox {

// "stat /x: no such file or directory".
inline std::string stat_failure(const std::string& path, int error_number) {
  std::string text = std::strerror(error_number);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return "stat " + path + ": " + text;
}

}  // namespace agbox
