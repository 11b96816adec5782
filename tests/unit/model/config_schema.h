// SPDX-License-Identifier: Apache-2.0
// Generates docs/sandbox.schema.json, the JSON Schema of config_yaml, from the messages that it is
// parsed into.
#pragma once

#include <string>

namespace agbox {

std::string config_schema();

}  // namespace agbox
