// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/url_query.h"

#include <boost/json.hpp>

namespace agbox {

std::string label_filter(const std::map<std::string, std::string>& labels) {
  boost::json::array wanted;
  for (const auto& [key, value] : labels) {
    wanted.emplace_back(value.empty() ? key : key + "=" + value);
  }
  return boost::json::serialize(boost::json::object{{"label", std::move(wanted)}});
}

}  // namespace agbox
