// SPDX-License-Identifier: Apache-2.0
// Checks with one HTTP ping whether an engine is reachable on a socket, and reads its version.
#pragma once

#include <agbox/daemon_inspection.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace agbox::sdk {

// Times out after a few seconds.
EngineInspection probe_engine(const std::filesystem::path& socket);

// The value of an HTTP response header; empty if it is missing. Names are case-insensitive.
std::string header_of(std::string_view response, std::string_view name);

}  // namespace agbox::sdk
