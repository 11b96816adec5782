// SPDX-License-Identifier: Apache-2.0
// Builds the variable parts of a request target; no value can break out of its part.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/percent_encode.h"

namespace agbox {

// The "label" filters of list and event calls as JSON: {"label":["a=b","c"]}. A label with an empty
// value filters by its key alone.
std::string label_filter(const std::map<std::string, std::string>& labels);

class UrlQuery {
 public:
  UrlQuery& add(std::string_view key, std::string_view value) {
    if (!text_.empty()) text_ += '&';
    text_.append(key).append("=").append(percent_encode(value));
    return *this;
  }
  UrlQuery& add_flag(std::string_view key, bool value) { return value ? add(key, "1") : *this; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace agbox
