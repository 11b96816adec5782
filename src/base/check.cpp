// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdlib>

#include "base/log.h"

namespace agbox {

void die(std::string_view why) {
  Logger().error("fatal", {{"error", why}});
  std::abort();
}

}  // namespace agbox
