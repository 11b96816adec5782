// SPDX-License-Identifier: Apache-2.0
// Whether an engine answers on a socket, and how it calls itself: one ping over HTTP, and no more.
#pragma once

#include <agbox/daemon_traces.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace agbox::sdk {

// Gives up after a few seconds.
EngineTraces probe_engine(const std::filesystem::path& socket);

// The value of a header of an HTTP answer, whatever the case of its name; empty where it is
// missing.
std::string header_of(std::string_view answer, std::string_view name);

}  // namespace agbox::sdk
