// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/url_query.h"

#include <boost/json.hpp>

namespace agbox {

std::string percent_encode(std::string_view text, std::string_view kept) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || std::string_view("-._~").contains(c) ||
                          kept.contains(c);
    if (is_plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 0x0F];
  }
  return encoded;
}

std::string label_filter(const std::map<std::string, std::string>& labels) {
  boost::json::array wanted;
  for (const auto& [key, value] : labels) {
    wanted.emplace_back(value.empty() ? key : key + "=" + value);
  }
  return boost::json::serialize(boost::json::object{{"label", std::move(wanted)}});
}

}  // namespace agbox
