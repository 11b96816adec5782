// SPDX-License-Identifier: Apache-2.0
#include "guest/account_files.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "guestwire/place.h"

namespace agbox::guest {
namespace {

using guestwire::kHome;
using guestwire::kUserName;
using Fields = std::vector<std::string_view>;

Fields split(std::string_view text, char separator) {
  Fields parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  if (lines.back().empty()) lines.pop_back();  // after the last newline
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) (text += line) += '\n';
  return text;
}

// The highest ID that both the engine and the kernel accept.
constexpr std::uint32_t kMaxId = std::numeric_limits<std::int32_t>::max();

std::optional<std::uint32_t> parse_id(std::string_view text) {
  std::uint32_t id = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, id);
  if (problem != std::errc() || rest != end || id > kMaxId) return std::nullopt;
  return id;
}

// name:password:uid:gid:comment:home:shell
struct User {
  std::string_view name;
  uid_t uid;
  gid_t gid;
  std::string_view home;
  std::string_view shell;
};

std::optional<User> parse_user(std::string_view line) {
  const Fields fields = split(line, ':');
  if (fields.size() != 7 || fields[0].empty()) return std::nullopt;
  const auto uid = parse_id(fields[2]);
  const auto gid = parse_id(fields[3]);
  if (!uid || !gid) return std::nullopt;
  return User{fields[0], *uid, *gid, fields[5], fields[6]};
}

// name:password:gid:member,member
struct Group {
  std::string_view name;
  gid_t gid;
  std::string_view members;

  bool has(std::string_view user) const {
    const Fields names = split(members, ',');
    return std::find(names.begin(), names.end(), user) != names.end();
  }
};

std::optional<Group> parse_group(std::string_view line) {
  const Fields fields = split(line, ':');
  if (fields.size() != 4 || fields[0].empty()) return std::nullopt;
  const auto gid = parse_id(fields[2]);
  if (!gid) return std::nullopt;
  return Group{fields[0], *gid, fields[3]};
}

std::string_view name_of(std::string_view line) {
  return line.substr(0, line.find(':'));
}

bool allows_login(std::string_view shell) {
  return !shell.empty() && !shell.ends_with("/nologin") && !shell.ends_with("/false");
}

std::string passwd_with(const AccountFiles& files, const RuntimeUserPlan& plan) {
  std::vector<std::string> lines = lines_of(files.passwd);
  std::string shell = plan.shell;
  for (const std::string& line : lines) {  // the first entry of the uid counts, as for getpwuid
    const auto user = parse_user(line);
    if (!user || user->uid != plan.uid) continue;
    if (allows_login(user->shell)) shell = user->shell;
    break;
  }
  std::erase_if(lines, [](const std::string& line) { return name_of(line) == kUserName; });
  const std::string entry = std::string(kUserName) + (files.shadow ? ":x:" : ":*:") +
                            std::to_string(plan.uid) + ":" + std::to_string(plan.gid) +
                            "::" + kHome + ":" + shell;
  auto place = lines.end();
  if (plan.uid != 0) {
    place = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
      const auto user = parse_user(line);
      return user && user->uid == plan.uid;
    });
  }
  lines.insert(place, entry);
  return joined(lines);
}

std::string group_with(const AccountFiles& files, const RuntimeUserPlan& plan) {
  std::vector<std::string> lines = lines_of(files.group);

  Fields former_names;  // other names of the runtime user's uid; root's groups are not inherited
  for (const std::string_view line : split(files.passwd, '\n')) {
    const auto user = parse_user(line);
    if (user && user->uid == plan.uid && plan.uid != 0) former_names.push_back(user->name);
  }
  const auto wanted = [&](const Group& group) {
    if (plan.uid == 0) return false;
    const auto& gids = plan.supplemental_gids;
    return std::find(gids.begin(), gids.end(), group.gid) != gids.end() ||
           std::any_of(former_names.begin(), former_names.end(),
                       [&](std::string_view name) { return group.has(name); });
  };
  for (std::string& line : lines) {
    const auto group = parse_group(line);
    if (!group || !wanted(*group) || group->has(kUserName)) continue;
    line += (group->members.empty() ? "" : ",") + std::string(kUserName);
  }

  const auto has_gid = [&](gid_t gid) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      const auto group = parse_group(line);
      return group && group->gid == gid;
    });
  };
  const auto has_name = [&](std::string_view name) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return name_of(line) == name; });
  };
  if (!has_gid(plan.gid)) {
    std::string name = kUserName;
    if (has_name(name)) name += "-" + std::to_string(plan.gid);
    lines.push_back(name + ":x:" + std::to_string(plan.gid) + ":");
  }
  if (plan.uid == 0) return joined(lines);
  for (const gid_t gid : plan.supplemental_gids) {
    if (has_gid(gid)) continue;
    const std::string number = std::to_string(gid);
    lines.push_back(std::string(kUserName) + "-supplemental-" + number + ":x:" + number + ":" +
                    kUserName);
  }
  return joined(lines);
}

std::string shadow_with(const std::string& shadow) {
  std::vector<std::string> lines = lines_of(shadow);
  const bool exists = std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return name_of(line) == kUserName;
  });
  if (exists) return shadow;
  // No password, and no expiry: without an entry sudo considers the account locked.
  lines.push_back(std::string(kUserName) + ":*:1::::::");
  return joined(lines);
}

std::vector<gid_t> groups_of(std::string_view user, std::string_view group_text, gid_t besides) {
  std::vector<gid_t> gids;
  for (const std::string_view line : split(group_text, '\n')) {
    const auto group = parse_group(line);
    if (!group || !group->has(user) || group->gid == besides) continue;
    if (std::find(gids.begin(), gids.end(), group->gid) == gids.end()) gids.push_back(group->gid);
  }
  return gids;
}

Result<gid_t> resolve_group(std::string_view name, std::string_view group_text) {
  for (const std::string_view line : split(group_text, '\n')) {
    const auto group = parse_group(line);
    if (group && group->name == name) return group->gid;
  }
  if (const auto gid = parse_id(name)) return *gid;
  return fail(reason::kInvalidArgument, "the image's USER names group '" + std::string(name) +
                                            "', which is neither in /etc/group nor a number");
}

}  // namespace

AccountFiles with_runtime_user(const AccountFiles& files, const RuntimeUserPlan& plan) {
  AccountFiles written;
  written.passwd = passwd_with(files, plan);
  written.group = group_with(files, plan);
  if (files.shadow) written.shadow = shadow_with(*files.shadow);
  return written;
}

Identity runtime_identity(const AccountFiles& files, const RuntimeUserPlan& plan) {
  Identity identity{plan.uid, plan.gid, groups_of(kUserName, files.group, plan.gid), kHome};
  return identity;
}

std::string user_name_of(uid_t uid, std::string_view passwd) {
  for (const std::string_view line : split(passwd, '\n')) {
    const auto user = parse_user(line);
    if (user && user->uid == uid) return std::string(user->name);
  }
  return std::to_string(uid);
}

Result<Identity> resolve_user(std::string_view user, const AccountFiles& files) {
  const std::size_t colon = user.find(':');
  const std::string_view name = user.substr(0, colon);
  const std::string_view group =
      colon == std::string_view::npos ? std::string_view() : user.substr(colon + 1);
  const auto number = name.empty() ? std::optional<std::uint32_t>(0) : parse_id(name);

  Identity identity;
  std::string_view known_as;
  for (const std::string_view line : split(files.passwd, '\n')) {
    const auto entry = parse_user(line);
    if (!entry) continue;
    // A number never refers to our own entry: USER 1000 must mean the same at the second start.
    const bool by_number = number && entry->uid == *number && entry->name != kUserName;
    if (entry->name != name && !by_number) continue;
    known_as = entry->name;
    identity = {entry->uid, entry->gid, {}, entry->home.empty() ? "/" : std::string(entry->home)};
    break;
  }
  if (known_as.empty()) {
    if (!number) {
      return fail(reason::kInvalidArgument, "the image's USER '" + std::string(name) +
                                                "' is neither in /etc/passwd nor a number");
    }
    identity.uid = *number;
  }
  if (!group.empty()) {
    AGBOX_TRY(gid, resolve_group(group, files.group));
    identity.gid = gid;
  } else if (!known_as.empty()) {
    identity.gids = groups_of(known_as, files.group, identity.gid);
  }
  return identity;
}

}  // namespace agbox::guest
