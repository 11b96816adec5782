// SPDX-License-Identifier: Apache-2.0
#include "cli/detach_keys.h"

#include <optional>

namespace agbox::cli {

namespace {

// Ctrl with a letter or one of @ [ \ ] ^ _ is the character's low five bits.
std::optional<char> key_of(std::string_view name) {
  constexpr std::string_view kCtrl = "ctrl-";
  if (name.size() == 1) return name[0];
  if (!name.starts_with(kCtrl) || name.size() != kCtrl.size() + 1) return std::nullopt;
  const char letter = name.back();
  const bool is_letter = letter >= 'a' && letter <= 'z';
  if (!is_letter && (letter < '@' || letter > '_')) return std::nullopt;
  return static_cast<char>(letter & 0x1F);
}

}  // namespace

Result<DetachKeys> DetachKeys::parse(std::string_view text) {
  DetachKeys keys;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto key = key_of(text.substr(0, comma));
    if (!key) {
      return fail(reason::kInvalidArgument,
                  "--detach-keys must be keys such as ctrl-p,ctrl-q or a: " + std::string(text));
    }
    keys.keys_ += *key;
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return keys;
}

DetachKeys::Typed DetachKeys::feed(std::string_view bytes) {
  Typed typed;
  if (keys_.empty()) return {.bytes = std::string(bytes)};
  for (const char key : bytes) {
    if (key != keys_[matched_] && matched_ > 0) {
      typed.bytes += keys_.substr(0, matched_);
      matched_ = 0;
    }
    if (key != keys_[matched_]) {
      typed.bytes += key;
    } else if (++matched_ == keys_.size()) {
      typed.is_detach = true;
      return typed;
    }
  }
  return typed;
}

}  // namespace agbox::cli
