// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/changes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/shown_path.h"
#include "base/tar/tree_counts.h"
#include "base/unique_fd.h"

namespace agbox::cli {

namespace {

// Of what people have to do something about; the rest is counted.
constexpr std::size_t kNamedPaths = 10;

std::vector<std::string> diff_command(std::vector<std::string> format) {
  std::vector<std::string> words{"diff",         "--no-ext-diff", "--no-textconv",
                                 "--no-renames", "--no-color",    "--ignore-submodules=all"};
  words.insert(words.end(), format.begin(), format.end());
  return words;
}

// The next part of a text with a NUL after each; empty at the end.
std::string_view next_part(std::string_view& text) {
  const std::size_t end = text.find('\0');
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

std::uint64_t number_of(std::string_view digits) {
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::string named(const std::vector<std::string>& paths) {
  std::string out;
  for (std::size_t i = 0; i < paths.size() && i < kNamedPaths; ++i) {
    out += "\n  " + shown_path(paths[i]);
  }
  if (paths.size() > kNamedPaths) {
    out += "\n  and " + std::to_string(paths.size() - kNamedPaths) + " more";
  }
  return out;
}

// :<old mode> <mode> <old object> <object> <status>\0<path>\0
std::vector<ChangedFile> changed_files(std::string_view raw) {
  constexpr std::string_view kLink = "120000";
  const auto object = [](std::string_view id) {
    return id.find_first_not_of('0') == std::string_view::npos ? std::string() : std::string(id);
  };
  std::vector<ChangedFile> out;
  while (!raw.empty()) {
    const std::string_view line = next_part(raw);
    const std::string_view path = next_part(raw);
    if (line.size() < 98) continue;  // not of this format
    out.push_back({.path = std::string(path),
                   .status = line[97],
                   .is_link = line.substr(8, 6) == kLink,
                   .was_link = line.substr(1, 6) == kLink,
                   .old_object = object(line.substr(15, 40)),
                   .object = object(line.substr(56, 40))});
  }
  return out;
}

// <added>\t<deleted>\t<path>\0, with - for both of a binary file.
void count_lines(std::vector<ChangedFile>& files, std::string_view counts) {
  std::map<std::string_view, ChangedFile*> by_path;
  for (ChangedFile& file : files) by_path[file.path] = &file;
  while (!counts.empty()) {
    const std::string_view line = next_part(counts);
    const std::size_t first = line.find('\t');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find('\t', first + 1);
    if (second == std::string_view::npos) continue;
    const auto found = by_path.find(line.substr(second + 1));
    if (found == by_path.end()) continue;
    ChangedFile& file = *found->second;
    file.is_binary = line.starts_with('-');
    // A file that became a link, or the reverse, has two lines.
    file.added += number_of(line.substr(0, first));
    file.deleted += number_of(line.substr(first + 1, second - first - 1));
  }
}

// By their IDs.
Result<std::map<std::string, std::string>> blobs(const GitStore& store,
                                                 const std::vector<std::string>& objects) {
  std::map<std::string, std::string> out;
  if (objects.empty()) return out;
  std::string wanted;
  for (const std::string& object : objects) (wanted += object) += '\n';
  AGBOX_TRY(text, store.run({"cat-file", "--batch"}, wanted));
  // <object> blob <size>\n<content>\n
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view header = rest.substr(0, end);
    const std::size_t size = number_of(header.substr(header.rfind(' ') + 1));
    if (end == std::string_view::npos || size + 1 > rest.size() - end - 1) break;
    out.emplace(header.substr(0, header.find(' ')), rest.substr(end + 1, size));
    rest.remove_prefix(end + 1 + size + 1);
  }
  return out;
}

// The content of a file or the target of a link; nullopt if it is neither, or cannot be read.
std::optional<std::string> content_on_host(const std::filesystem::path& path, bool is_link) {
  std::error_code problem;
  if (is_link) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, problem);
    return problem ? std::nullopt : std::optional(target.string());
  }
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  auto content = read_all(file.get(), static_cast<std::size_t>(found.st_size) + 1);
  return content ? std::optional(std::move(*content)) : std::nullopt;
}

std::string without_prefix(std::string_view text, std::string_view prefix) {
  return std::string(text.starts_with(prefix) ? text.substr(prefix.size()) : text);
}

// The messages of `git apply`, one per line.
std::string reasons_of(std::string_view messages) {
  std::vector<std::string> lines;
  while (!messages.empty()) {
    const std::size_t end = messages.find('\n');
    const std::string_view line = messages.substr(0, end);
    messages.remove_prefix(end == std::string_view::npos ? messages.size() : end + 1);
    // The next line says the same of the file as a whole.
    if (line.empty() || line.starts_with("error: patch failed: ")) continue;
    lines.push_back(without_prefix(line, "error: "));
  }
  return named(lines);
}

}  // namespace

Result<std::string> WorkspaceChanges::patch() const {
  return record_.store().run(diff_command({"--binary", "--full-index", from_, to_}));
}

Result<std::string> WorkspaceChanges::stat(std::size_t columns) const {
  return record_.store().run(diff_command({"--stat=" + std::to_string(columns), from_, to_}));
}

Result<std::string> WorkspaceChanges::summary() const {
  AGBOX_TRY(text, record_.store().run(diff_command({"--shortstat", from_, to_})));
  while (text.ends_with('\n')) text.pop_back();
  while (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

Result<std::vector<ChangedFile>> WorkspaceChanges::files() const {
  const GitStore store = record_.store();
  AGBOX_TRY(raw, store.run(diff_command({"--raw", "-z", "--abbrev=40", from_, to_})));
  AGBOX_TRY(counts, store.run(diff_command({"--numstat", "-z", from_, to_})));
  std::vector<ChangedFile> out = changed_files(raw);
  count_lines(out, counts);
  std::vector<std::string> links;
  for (const ChangedFile& file : out) {
    if (file.is_link) links.push_back(file.object);
  }
  AGBOX_TRY(targets, blobs(store, links));
  for (ChangedFile& file : out) {
    if (file.is_link) file.link_target = targets[file.object];
  }
  return out;
}

Result<std::vector<std::string>> WorkspaceChanges::hidden_repositories() const {
  AGBOX_TRY(changed, files());
  AGBOX_TRY(listed, record_.store().run({"ls-tree", "-r", "-t", "-z", "--name-only", to_}));
  std::set<std::string, std::less<>> paths;
  for (std::string_view rest = listed; !rest.empty();) paths.emplace(next_part(rest));
  // Also what only this machine has: git knows no empty directories, and the record nothing
  // ignored.
  const auto exists = [&](const std::string& path) {
    std::error_code problem;
    return paths.contains(path) || std::filesystem::exists(std::filesystem::symlink_status(
                                       record_.workspace() / path, problem));
  };
  // Any directory that something changes in: its configuration alone may be what is new.
  std::set<std::string> directories;
  for (const ChangedFile& file : changed) {
    for (std::size_t end = file.path.rfind('/');; end = file.path.rfind('/', end - 1)) {
      const bool is_root = end == std::string::npos;
      if (!directories.insert(is_root ? "" : file.path.substr(0, end + 1)).second || is_root) break;
    }
  }
  std::vector<std::string> out;
  for (const std::string& directory : directories) {
    // By these git recognizes one, also if they are links. commondir says where the others are.
    const bool is_repository = exists(directory + "HEAD") &&
                               (exists(directory + "commondir") ||
                                (exists(directory + "objects") && exists(directory + "refs")));
    if (is_repository) out.push_back(directory.empty() ? "." : directory);
  }
  return out;
}

Result<std::string> WorkspaceChanges::uncommitted() const {
  const std::filesystem::path& workspace = record_.workspace();
  if (!is_in_git_work_tree(workspace)) return changed_since();
  AGBOX_TRY(status, run_users_git(workspace,
                                  {"status", "--porcelain", "-z", "--no-renames",
                                   "--untracked-files=no", "--ignore-submodules=all", "--", "."}));
  if (status.exit_code != 0) {
    return fail(reason::kHostNotReady, "git status in " + workspace.string() + ": " + status.error);
  }
  std::vector<std::string> paths;
  for (std::string_view rest = status.out; !rest.empty();) {
    const std::string_view line = next_part(rest);  // "XY path"
    if (line.size() > 3) paths.emplace_back(line.substr(3));
  }
  if (paths.empty()) return std::string();
  return workspace.string() + " has uncommitted changes:" + named(paths);
}

// Without git: of the files that would change, those whose content is no longer what went in.
Result<std::string> WorkspaceChanges::changed_since() const {
  AGBOX_TRY(changed, files());
  std::vector<std::string> objects;
  for (const ChangedFile& file : changed) {
    if (!file.old_object.empty()) objects.push_back(file.old_object);
  }
  AGBOX_TRY(contents, blobs(record_.store(), objects));
  std::vector<std::string> paths;
  for (const ChangedFile& file : changed) {
    if (file.old_object.empty()) continue;  // git refuses to replace one that exists
    const auto now = content_on_host(record_.workspace() / file.path, file.was_link);
    if (!now || *now != contents[file.old_object]) paths.push_back(file.path);
  }
  if (paths.empty()) return std::string();
  return "in " + record_.workspace().string() +
         " has changed since the session began:" + named(paths);
}

Result<> WorkspaceChanges::apply(const std::filesystem::path& directory) const {
  const GitStore store = record_.store();
  AGBOX_TRY(text, patch());
  const std::vector<std::string> check{"apply", "--check", "--whitespace=nowarn", "-"};
  AGBOX_TRY(checked, store.run_in(directory, check, text));
  if (checked.exit_code != 0) {
    return fail(reason::kPathConflict,
                "the changes do not fit " + directory.string() +
                    " any more, and none of them was applied:" + reasons_of(checked.error));
  }
  const std::vector<std::string> apply{"apply", "--whitespace=nowarn", "-"};
  AGBOX_TRY(applied, store.run_in(directory, apply, text));
  if (applied.exit_code == 0) return {};
  return fail(reason::kPathConflict,
              "git apply stopped in " + directory.string() +
                  "; some of the changes may have been applied:" + reasons_of(applied.error));
}

bool leads_out(std::string_view path, std::string_view target) {
  if (target.starts_with('/')) return true;
  auto depth = std::ranges::count(path, '/');  // of the directory of the link
  while (!target.empty()) {
    const std::size_t slash = target.find('/');
    const std::string_view name = target.substr(0, slash);
    target.remove_prefix(slash == std::string_view::npos ? target.size() : slash + 1);
    if (name == "..") --depth;
    if (name != ".." && name != "." && !name.empty()) ++depth;
    if (depth < 0) return true;
  }
  return false;
}

}  // namespace agbox::cli
