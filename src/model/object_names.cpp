// SPDX-License-Identifier: Apache-2.0
#include "model/object_names.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/hex.h"

namespace agbox {
namespace {

constexpr std::string_view kNetworkPrefix = "agbox-net-";
constexpr std::string_view kCompanion = "companion";

// FNV-1a with a final mix, so that every bit of the result depends on every character. Not secret
// and not meant to be: two sandboxes that meet get a clear error from the engine.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char c : text) {
    value ^= static_cast<unsigned char>(c);
    value *= 0x100000001b3U;
  }
  value ^= value >> 33U;
  value *= 0xff51afd7ed558ccdU;
  value ^= value >> 33U;
  return value;
}

// All of them can be in the name of an interface.
std::string base64(std::uint64_t value, std::size_t characters) {
  constexpr std::string_view alphabet =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    text += alphabet[value & 63U];
    value >>= 6U;
  }
  return text;
}

constexpr std::size_t kBridgeNameSize = 15;  // IFNAMSIZ without the final zero

// Which characters of a bridge's name are for what. Common user IDs are small, and the shorter they
// are the more is left for the rest.
struct BridgeLayout {
  std::uint32_t first_uid;
  std::uint32_t mark;  // the lowest bits of the user's characters: none is the other's beginning
  std::uint32_t mark_bits;
  std::size_t user;
  std::size_t instance;
};
constexpr BridgeLayout kSmallUid{
    .first_uid = 0, .mark = 0b0, .mark_bits = 1, .user = 2, .instance = 3};
constexpr BridgeLayout kMediumUid{
    .first_uid = 1U << 11U, .mark = 0b01, .mark_bits = 2, .user = 4, .instance = 2};
constexpr BridgeLayout kLargeUid{
    .first_uid = 1U << 22U, .mark = 0b11, .mark_bits = 2, .user = 6, .instance = 1};

const BridgeLayout& layout_for(std::uint32_t uid) {
  if (uid < kMediumUid.first_uid) return kSmallUid;
  return uid < kLargeUid.first_uid ? kMediumUid : kLargeUid;
}

std::string label(std::string_view suffix) {
  return std::string(kLabelNamespace) + "." + std::string(suffix);
}

// What existing clients replace in the parts of a name.
std::string name_part(std::string_view text) {
  constexpr std::string_view replaced = "/\\: .";
  std::string part(text);
  std::ranges::replace_if(part, [&](char c) { return replaced.contains(c); }, '-');
  return part;
}

Labels common_labels(std::string_view instance_id, std::string_view sandbox_id,
                     const Labels& user_labels) {
  Labels labels;
  for (const auto& [key, value] : user_labels) labels[label("user." + key)] = value;
  labels[instance_label()] = instance_id;
  labels[sandbox_label()] = sandbox_id;
  return labels;
}

}  // namespace

std::string network_name(std::string_view sandbox_id) {
  return std::string(kNetworkPrefix).append(sandbox_id);
}

std::optional<std::string> sandbox_of_network(std::string_view name) {
  if (!name.starts_with(kNetworkPrefix)) return std::nullopt;
  return std::string(name.substr(kNetworkPrefix.size()));
}

std::string primary_container_name(std::string_view sandbox_id) {
  return std::string("agbox-primary-").append(sandbox_id);
}

std::string companion_container_name(std::string_view sandbox_id, std::string_view name) {
  return "agbox-cc-" + name_part(sandbox_id) + "-" + name_part(name);
}

std::string distinct_companion_container_name(std::string_view sandbox_id, std::string_view name) {
  std::string both(sandbox_id);
  both += '\0';
  both += name;
  const std::uint64_t value = hash(both);
  std::array<unsigned char, 4> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes.at(i) = static_cast<unsigned char>(value >> (8 * i));
  }
  return companion_container_name(sandbox_id, name) + "-" + to_hex(bytes);
}

std::uint32_t own_uid() {
  return ::getuid();
}

std::string bridge_prefix(std::string_view instance_id, std::uint32_t uid) {
  const BridgeLayout& layout = layout_for(uid);
  const std::uint64_t user = (std::uint64_t{uid} << layout.mark_bits) | layout.mark;
  return std::string(kBridgePrefix) + base64(user, layout.user) +
         base64(hash(instance_id), layout.instance);
}

std::string bridge_name(std::string_view instance_id, std::string_view sandbox_id,
                        std::uint32_t uid) {
  const std::string prefix = bridge_prefix(instance_id, uid);
  return prefix + base64(hash(sandbox_id), kBridgeNameSize - prefix.size());
}

std::string instance_label() {
  return label("instance");
}
std::string sandbox_label() {
  return label("sandbox-id");
}

std::string component_label() {
  return label("component");
}

std::string companion_label() {
  return label("companion-container-name");
}

Labels network_labels(std::string_view instance_id, std::string_view sandbox_id,
                      const Labels& user_labels) {
  Labels labels = common_labels(instance_id, sandbox_id, user_labels);
  labels[component_label()] = "primary";
  labels[label("profile")] = "default";
  return labels;
}

Labels primary_labels(std::string_view instance_id, std::string_view sandbox_id,
                      const Labels& user_labels) {
  return network_labels(instance_id, sandbox_id, user_labels);
}

Labels companion_labels(std::string_view instance_id, std::string_view sandbox_id,
                        std::string_view name, const Labels& user_labels) {
  Labels labels = common_labels(instance_id, sandbox_id, user_labels);
  labels.merge(companion_key(name));
  return labels;
}

Labels companion_key(std::string_view name) {
  return {{component_label(), std::string(kCompanion)}, {companion_label(), std::string(name)}};
}

std::optional<std::string> companion_of(const Labels& labels) {
  const auto component = labels.find(component_label());
  if (component == labels.end() || component->second != kCompanion) return std::nullopt;
  const auto name = labels.find(companion_label());
  return name == labels.end() ? std::string() : name->second;
}

}  // namespace agbox
