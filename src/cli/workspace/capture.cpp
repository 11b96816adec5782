// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/capture.h"

#include <agbox/file_copy.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/workspace/tree_import.h"

namespace agbox::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kContent = "/workspace/.";
// Not yet the saved tree: if it does not become complete, the last one stays.
constexpr const char* kNewTree = "refs/agbox/new";
// After the end of an archive.
constexpr std::size_t kMaxAfterEnd = std::size_t{1} << 20;

sdk::Error local_error(const Error& error) {
  return {.kind = sdk::ErrorKind::LocalFile,
          .code = static_cast<sdk::StatusCode>(error.reason().code),
          .reason = std::string(error.reason().name),
          .message = error.message()};
}

std::expected<std::size_t, int> read_some(int fd, std::span<char> into) {
  while (true) {
    const ssize_t got = ::read(fd, into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return std::unexpected(errno);
  }
}

void drain(int fd) {
  std::array<char, 65536> bytes{};
  for (std::size_t drained = 0; drained <= kMaxAfterEnd;) {
    const auto got = read_some(fd, bytes);
    if (!got || *got == 0) return;
    drained += *got;
  }
}

// Root of the sandbox reads, because an agent may have used sudo.
sdk::Result<ImportedTree> capture(const sdk::RawClient& client, const std::string& sandbox_id,
                                  const GitStore& store, const TreeImport& options,
                                  const std::stop_token& stop) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(local_error(errno_error("create a pipe", errno)));
  }
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  sdk::Result<sdk::FileCopyResult> copied;
  Result<ImportedTree> imported = fail(reason::kInternal, "not imported");
  {
    // One side of the pipe blocks until the other one reads or writes.
    const std::jthread copying([&] {
      copied = sdk::copy_tar_out(client, sandbox_id, kContent, writer.get(),
                                 {.as_root = true, .stop = stop});
      writer = UniqueFd();
    });
    imported = import_tree(store, options,
                           [&](std::span<char> into) { return read_some(reader.get(), into); });
    if (imported) drain(reader.get());
    reader = UniqueFd();  // of an import that failed, nobody reads the rest
  }
  if (!imported && copied) return std::unexpected(local_error(imported.error()));
  // The end of a stream that failed is the import's problem too.
  const bool is_own = !imported && copied.error().kind == sdk::ErrorKind::LocalFile;
  if (is_own) return std::unexpected(local_error(imported.error()));
  if (!copied) return std::unexpected(copied.error());
  return *std::move(imported);
}

std::vector<std::string> split_at_nul(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

// The .gitignore files alone, as git expects them. A name that no directory of this machine can
// have is none that git could have read.
void write_ignore_files(const fs::path& directory,
                        const std::map<std::string, std::string>& ignore_files) {
  for (const auto& [path, content] : ignore_files) {
    std::error_code problem;
    fs::create_directories((directory / path).parent_path(), problem);
    std::ofstream(directory / path, std::ios::binary) << content;
  }
}

// Of the files that were added since, those that a .gitignore names.
Result<std::vector<std::string>> ignored_additions(
    const WorkspaceRecord& record, const std::map<std::string, std::string>& ignore_files) {
  if (ignore_files.empty()) return std::vector<std::string>();
  const GitStore store = record.store();
  AGBOX_TRY(listed, store.run({"diff-tree", "-r", "-z", "--no-renames", "--name-only",
                               "--diff-filter=A", kBaseTree, kNewTree}));
  if (listed.empty()) return std::vector<std::string>();
  std::string paths;
  // Without "./" a name that begins with a colon would be a pattern.
  for (const std::string& path : split_at_nul(listed)) ((paths += "./") += path) += '\0';
  AGBOX_TRY(scratch, record.scratch());
  write_ignore_files(scratch, ignore_files);
  auto checked = store.run_in(scratch, {"check-ignore", "--no-index", "-z", "--stdin"}, paths);
  std::error_code problem;  // the next one removes what is left
  fs::remove_all(scratch, problem);
  if (!checked) return std::unexpected(checked.error());
  constexpr int kNoneIsIgnored = 1;
  if (checked->exit_code != 0 && checked->exit_code != kNoneIsIgnored) {
    return fail(reason::kHostNotReady, "git check-ignore: " + checked->error);
  }
  std::vector<std::string> ignored_paths;
  for (const std::string& path : split_at_nul(checked->out)) {
    ignored_paths.push_back(path.substr(2));
  }
  return ignored_paths;
}

Result<> save(const WorkspaceRecord& record,
              const std::map<std::string, std::string>& ignore_files) {
  const GitStore store = record.store();
  AGBOX_TRY(left_out, ignored_additions(record, ignore_files));
  if (left_out.empty()) {
    AGBOX_TRY_VOID(store.run({"update-ref", kSavedTree, kNewTree}));
  } else {
    AGBOX_TRY_VOID(commit_without(store, kNewTree, left_out, kSavedTree));
  }
  record.touch();
  return {};
}

sdk::Result<ImportedTree> capture_as(const char* reference, const sdk::RawClient& client,
                                     const WorkspaceRecord& record, const std::stop_token& stop) {
  const auto ignored = record.ignored();
  if (!ignored) return std::unexpected(local_error(ignored.error()));
  const TreeImport options{.reference = reference, .is_left_out = [&](std::string_view path) {
                             return ignored->contains(path);
                           }};
  return capture(client, record.sandbox_id(), record.store(), options, stop);
}

}  // namespace

sdk::Result<void> capture_base(const sdk::RawClient& client, const WorkspaceRecord& record,
                               const std::stop_token& stop) {
  const auto tree = capture_as(kBaseTree, client, record, stop);
  if (!tree) return std::unexpected(tree.error());
  return {};
}

sdk::Result<void> capture_now(const sdk::RawClient& client, const WorkspaceRecord& record,
                              const std::stop_token& stop) {
  const auto tree = capture_as(kNewTree, client, record, stop);
  if (!tree) return std::unexpected(tree.error());
  if (const auto saved = save(record, tree->ignore_files); !saved) {
    return std::unexpected(local_error(saved.error()));
  }
  return {};
}

}  // namespace agbox::cli
