// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <system_error>

namespace agbox {

Error errno_error(std::string_view what, int error_number) {
  return {reason::kHostNotReady,
          std::string(what) + ": " + std::generic_category().message(error_number)};
}

}  // namespace agbox
