// SPDX-License-Identifier: Apache-2.0
#include "cli/format/printable.h"

#include "base/hex.h"

namespace agbox::cli {

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) {
      out += "\\x" + to_hex(text.substr(i, 1));
    } else if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) {
      // C1 control characters, U+0080 to U+009F: U+009B alone begins an escape sequence.
      out += "\\x" + to_hex(text.substr(++i, 1));
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string printable_line(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    const bool is_blank = c == '\n' || c == '\t' || c == ' ';
    if (!is_blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace agbox::cli
