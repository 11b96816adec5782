// SPDX-License-Identifier: Apache-2.0
// How our objects are called in the engine. Names are derived, never stored: a create that starts
// over after a crash finds what it made before. Existing clients derive the same names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace agbox {

inline constexpr std::string_view kLabelNamespace = "io.github.1996fanrui.agents-sandbox";

std::string network_name(std::string_view sandbox_id);
// The sandbox whose network would have this name; nullopt if it is not one of ours.
std::optional<std::string> sandbox_of_network(std::string_view name);
std::string primary_container_name(std::string_view sandbox_id);
// Ambiguous: companion "b" of sandbox "team-a" and "a-b" of "team" have the same.
std::string companion_container_name(std::string_view sandbox_id, std::string_view name);
// If another container of ours has that one.
std::string distinct_companion_container_name(std::string_view sandbox_id, std::string_view name);

// How the name of every sandbox's bridge begins, whichever instance it belongs to.
inline constexpr std::string_view kBridgePrefix = "agbx";
// The user that this process runs as. Part of the names below: any user can run the daemon, with
// any instance ID, and must not be able to name what another user's daemon has made.
std::uint32_t own_uid();
// agbx + characters of the user, the instance and the sandbox: 15 in all, which is what an
// interface name can hold. The firewall knows our bridges by the prefix, which ends before the
// sandbox's. Prefixes of different users differ, and none begins with another.
std::string bridge_name(std::string_view instance_id, std::string_view sandbox_id,
                        std::uint32_t uid = own_uid());
std::string bridge_prefix(std::string_view instance_id, std::uint32_t uid = own_uid());

using Labels = std::map<std::string, std::string>;

// The label that says whose object it is, the one that says of which sandbox, and the one that says
// what it is there: a primary or a companion.
std::string instance_label();
std::string sandbox_label();
std::string component_label();
// The label with the name of a companion.
std::string companion_label();

Labels network_labels(std::string_view instance_id, std::string_view sandbox_id,
                      const Labels& user_labels);
Labels primary_labels(std::string_view instance_id, std::string_view sandbox_id,
                      const Labels& user_labels);
Labels companion_labels(std::string_view instance_id, std::string_view sandbox_id,
                        std::string_view name, const Labels& user_labels);
// Of these, what identifies it among the containers of its sandbox.
Labels companion_key(std::string_view name);
// The companion that has these labels; nullopt if they are not those of a companion. A missing
// label means primary.
std::optional<std::string> companion_of(const Labels& labels);

}  // namespace agbox
