// SPDX-License-Identifier: Apache-2.0
// The keys that end a session and leave its exec running, as docker has them: "ctrl-p,ctrl-q".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox::cli {

inline constexpr const char* kDefaultDetachKeys = "ctrl-p,ctrl-q";

class DetachKeys {
 public:
  // "ctrl-x" and single characters, separated by commas. Empty: no keys.
  static Result<DetachKeys> parse(std::string_view text);

  struct Typed {
    std::string bytes;  // for the exec; a beginning of the keys is kept until the next key
    bool is_detach = false;
  };
  Typed feed(std::string_view bytes);

 private:
  std::string keys_;
  std::size_t matched_ = 0;
};

}  // namespace agbox::cli
