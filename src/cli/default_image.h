// SPDX-License-Identifier: Apache-2.0
// What a sandbox is made of where nobody says otherwise.
#pragma once

namespace agbox::cli {

inline constexpr const char* kDefaultImage = "ghcr.io/agents-sandbox/coding-runtime:latest";

}  // namespace agbox::cli
