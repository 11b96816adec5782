// SPDX-License-Identifier: Apache-2.0
#include "model/object_names.h"

#include <cstdint>

namespace agbox {
namespace {

constexpr std::string_view kNetworkPrefix = "agbox-net-";

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

std::string base32(std::uint64_t value, std::size_t characters) {
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  std::string text;
  for (std::size_t i = 0; i < characters; ++i) {
    text += alphabet[value & 31U];
    value >>= 5U;
  }
  return text;
}

std::string label(std::string_view suffix) {
  return std::string(kLabelNamespace) + "." + std::string(suffix);
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

std::string bridge_prefix(std::string_view instance_id) {
  return std::string(kBridgePrefix) + base32(hash(instance_id), 4);
}

std::string bridge_name(std::string_view instance_id, std::string_view sandbox_id) {
  return bridge_prefix(instance_id) + base32(hash(sandbox_id), 7);
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

Labels network_labels(std::string_view instance_id, std::string_view sandbox_id,
                      const Labels& user_labels) {
  Labels labels;
  for (const auto& [key, value] : user_labels) labels[label("user." + key)] = value;
  labels[instance_label()] = instance_id;
  labels[sandbox_label()] = sandbox_id;
  labels[component_label()] = "primary";
  labels[label("profile")] = "default";
  return labels;
}

Labels primary_labels(std::string_view instance_id, std::string_view sandbox_id,
                      const Labels& user_labels) {
  return network_labels(instance_id, sandbox_id, user_labels);
}

}  // namespace agbox
