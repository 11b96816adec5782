// SPDX-License-Identifier: Apache-2.0
// The rules for ids that callers choose. Sandbox and exec ids are two namespaces with one grammar.
#pragma once

#include <string_view>

#include "base/result.h"

namespace agbox {

// 4 to 200 characters, letters, digits, - and _, a letter or digit at both ends.
// `field` is the request's name for it: sandbox_id or exec_id.
Result<> check_id(std::string_view field, std::string_view id);

}  // namespace agbox
