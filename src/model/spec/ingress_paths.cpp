// SPDX-License-Identifier: Apache-2.0
#include "model/spec/ingress_paths.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/path_within.h"
#include "model/copy/path_pattern.h"
#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

// The kernel's limit, without the NUL byte.
constexpr std::size_t kPathBytes = 4095;
constexpr std::string_view kRuntimeHome = "/home/agbox";

// What the sandbox itself has there. A mount below one of them, or on a parent, would hide or
// replace it.
constexpr std::array<std::string_view, 7> kReservedTargets = {
    "/proc",      "/sys",         "/dev", "/var/log/agents-sandbox", "/etc/resolv.conf",
    "/etc/hosts", "/etc/hostname"};
// The mounts of the guest.
constexpr std::string_view kReservedPrefix = "/.agbox-";

bool names_a_user(std::string_view path) {
  return path.starts_with('~') && path.size() > 1 && path[1] != '/';
}

// nullopt if it has a ".." component. Keeps a leading slash or "~", and loses a trailing slash.
std::optional<std::string> cleaned(std::string_view path) {
  std::string clean;
  const bool is_absolute = path.starts_with('/');
  while (!path.empty()) {
    const std::string_view component = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), component.size() + 1));
    if (component == "..") return std::nullopt;
    if (component.empty() || component == ".") continue;
    if (is_absolute || !clean.empty()) clean += '/';
    clean += component;
  }
  return is_absolute && clean.empty() ? "/" : clean;
}

// Checks what a source and a target have in common.
Result<> check_path_text(const std::string& name, const std::string& path) {
  if (path.size() > kPathBytes) {
    return invalid_argument(name + " is longer than " + std::to_string(kPathBytes) + " bytes");
  }
  if (contains_nul(path)) return invalid_argument(name + " contains a NUL byte");
  return {};
}

Result<> check_reserved(const std::string& name, std::string_view target) {
  const auto refuse = [&](std::string_view reserved) {
    return invalid_argument(name + " " + std::string(target) +
                            " is not possible: " + std::string(reserved) +
                            " is part of every sandbox; choose another path");
  };
  if (target == "/") return refuse("/");
  if (target.starts_with(kReservedPrefix)) return refuse(std::string(kReservedPrefix) + "*");
  for (const std::string_view reserved : kReservedTargets) {
    if (is_path_within(target, reserved) || is_path_within(reserved, target)) {
      return refuse(reserved);
    }
  }
  return {};
}

// The order of these checks is known to clients.
Result<> clean_paths(const std::string& word, std::string& source, std::string& target) {
  const std::string source_name = word + " source";
  const std::string target_name = word + " target";
  if (source.empty()) return invalid_argument(source_name + " is required");
  AGBOX_TRY_VOID(check_path_text(source_name, source));
  AGBOX_TRY_VOID(check_path_text(target_name, target));
  for (const std::string& path : {source, target}) {
    if (names_a_user(path)) {
      return invalid_argument("~username syntax is not supported: " + path);
    }
  }
  if (!source.starts_with('~') && !source.starts_with('/')) {
    return invalid_argument(source_name + " must be absolute: " + source);
  }
  auto clean_source = cleaned(source);
  if (!clean_source) return invalid_argument(source_name + " must not contain \"..\": " + source);

  if (target.empty()) return invalid_argument(target_name + " is required");
  const bool is_below_home = target.starts_with('~');
  if (!is_below_home && !target.starts_with('/')) {
    return invalid_argument(target_name + " must be absolute: " + target);
  }
  auto clean_target =
      cleaned(is_below_home ? std::string(kRuntimeHome) + target.substr(1) : target);
  if (!clean_target) return invalid_argument(target_name + " must not contain \"..\": " + target);
  AGBOX_TRY_VOID(check_reserved(target_name, *clean_target));
  source = std::move(*clean_source);
  target = std::move(*clean_target);
  return {};
}

// Who uses which target, by its clean path.
using TargetOwners = std::map<std::string, std::string>;

Result<> take_target(TargetOwners& owners, const std::string& target, const std::string& word) {
  const auto [owner, is_new] = owners.emplace(target, word);
  if (is_new) return {};
  return invalid_argument("conflicting target " + target + " between " + owner->second + " and " +
                          word);
}

Result<> check_exclude_patterns(const v1::CopySpec& copy) {
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(copy.exclude_patterns_size()),
                         maxima::kExcludePatterns, "the number of a copy's exclude_patterns"));
  for (int i = 0; i < copy.exclude_patterns_size(); ++i) {
    AGBOX_TRY_VOID(check_path_text("copy exclude_patterns[" + std::to_string(i) + "]",
                                   copy.exclude_patterns(i)));
    std::string_view pattern = copy.exclude_patterns(i);
    if (pattern.starts_with('!')) pattern.remove_prefix(1);
    if (!is_path_pattern(pattern)) {
      return invalid_argument("copy exclude_patterns[" + std::to_string(i) + "] " +
                              quoted_excerpt(copy.exclude_patterns(i)) +
                              " is not a pattern: a class [...] is empty or does not end, or a "
                              "backslash escapes nothing");
    }
  }
  return {};
}

}  // namespace

Result<> clean_ingress_paths(v1::CreateSpec& spec) {
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(spec.mounts_size()), maxima::kMounts,
                         "the number of mounts"));
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(spec.copies_size()), maxima::kCopies,
                         "the number of copies"));
  TargetOwners owners;
  for (v1::MountSpec& mount : *spec.mutable_mounts()) {
    AGBOX_TRY_VOID(clean_paths("mount", *mount.mutable_source(), *mount.mutable_target()));
    AGBOX_TRY_VOID(take_target(owners, mount.target(), "mount"));
  }
  for (v1::CopySpec& copy : *spec.mutable_copies()) {
    const bool is_directory = copy.target().ends_with('/');
    AGBOX_TRY_VOID(clean_paths("copy", *copy.mutable_source(), *copy.mutable_target()));
    if (copy.source() == "/") {
      return invalid_argument("copy source must not be the root directory");
    }
    AGBOX_TRY_VOID(take_target(owners, copy.target(), "copy"));
    AGBOX_TRY_VOID(check_exclude_patterns(copy));
    if (is_directory) copy.mutable_target()->push_back('/');
  }
  return {};
}

}  // namespace agbox
