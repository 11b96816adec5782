// SPDX-License-Identifier: Apache-2.0
// config_yaml of CreateSandbox. Its keys are the fields of CreateSpec, with three differences:
// durations are strings, port protocols are lower-case names, and companions and services are maps
// by name.
#pragma once

#include <string_view>

#include "agbox/v1/spec.pb.h"
#include "base/result.h"
#include "model/spec/yaml.h"

namespace agbox {

// Every error begins with the line and column of its cause. Whether the values are possible is for
// parse_create_spec() to check.
Result<v1::CreateSpec> parse_config_yaml(std::string_view yaml);

// The same for a map of a larger document.
Result<v1::CreateSpec> parse_config_map(const YamlNode& map);

// What a caller set in create_spec overrides the file: single values replace its values, lists are
// appended to its lists (but a command replaces it), and maps are merged by key.
v1::CreateSpec merge_create_specs(v1::CreateSpec file, const v1::CreateSpec& overrides);

}  // namespace agbox
