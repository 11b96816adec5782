// SPDX-License-Identifier: Apache-2.0
// The image of a sandbox unless the user chooses another.
#pragma once

namespace agbox::cli {

inline constexpr const char* kDefaultImage = "ghcr.io/agents-sandbox/coding-runtime:latest";

}  // namespace agbox::cli
