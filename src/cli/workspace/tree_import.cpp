// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/tree_import.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/shown_path.h"

namespace agbox::cli {

namespace {

constexpr std::size_t kZeros = 65536;
// No .gitignore of people is larger.
constexpr std::uint64_t kMaxIgnoreFile = std::uint64_t{1} << 20;
// They are kept in memory; what is above it is not ignored.
constexpr std::uint64_t kMaxIgnoreFiles = std::uint64_t{64} << 20;
constexpr std::uint32_t kOwnerMayExecute = 0100;

std::string commit_header(const std::string& reference) {
  return "feature done\ncommit " + reference + "\ncommitter agbox <agbox> 0 +0000\ndata 0\n\n";
}

// git compares it in this way on some filesystems.
bool is_git_directory(std::string_view name) {
  return std::ranges::equal(name, std::string_view(".git"), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

// Without "." and empty components; empty for the root and what is left out.
Result<std::string> tree_path(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      return fail(reason::kInvalidArgument, "the sandbox sent a path with \"..\"");
    }
    if (is_git_directory(name)) return std::string();
    out.append(out.empty() ? "" : "/").append(name);
  }
  return out;
}

class TreeImporter {
 public:
  TreeImporter(GitProcess process, const TreeImport& options)
      : process_(std::move(process)), options_(options) {}

  Result<ImportedTree> import(TarReader& tar) {
    AGBOX_TRY_VOID(write(commit_header(options_.reference)));
    while (true) {
      AGBOX_TRY(entry, tar.next());
      if (!entry) break;
      AGBOX_TRY_VOID(add(tar, *entry));
    }
    AGBOX_TRY_VOID(write("done\n"));
    const GitOutput done = process_.finish();
    if (done.exit_code == 0) return std::move(tree_);
    return fail(reason::kHostNotReady,
                "git fast-import ended with " + std::to_string(done.exit_code) + ": " + done.error);
  }

 private:
  Result<> write(std::string_view bytes) {
    if (process_.write(bytes) == 0) return {};
    const GitOutput done = process_.finish();
    return fail(reason::kHostNotReady,
                "git fast-import ended with " + std::to_string(done.exit_code) + ": " + done.error);
  }

  Result<> add(TarReader& tar, const TarEntry& entry) {
    if (entry.kind == TarEntry::Kind::Directory) return {};
    AGBOX_TRY(path, tree_path(entry.path));
    if (path.empty() || (options_.is_left_out && options_.is_left_out(path))) return {};
    if (++tree_.counts.entries > options_.limits.entries) {
      return fail(reason::kCopyTooLarge,
                  "there are more than " + std::to_string(options_.limits.entries) + " files");
    }
    if (entry.kind == TarEntry::Kind::Symlink) return add_link(path, entry);
    return add_file(tar, path, entry);
  }

  Result<> add_link(const std::string& path, const TarEntry& entry) {
    if (entry.target.empty()) return {};
    AGBOX_TRY_VOID(write("M 120000 inline " + quoted_path(path) + "\ndata " +
                         std::to_string(entry.target.size()) + "\n"));
    return write(entry.target + "\n");
  }

  Result<> add_file(TarReader& tar, const std::string& path, const TarEntry& entry) {
    // With the holes of a sparse file: git stores them.
    if (entry.size > options_.limits.bytes - tree_.counts.bytes) {
      return fail(reason::kCopyTooLarge, "there are more than " +
                                             std::to_string(options_.limits.bytes >> 30) +
                                             " GiB of files, at " + shown_path(path));
    }
    tree_.counts.bytes += entry.size;
    const bool may_execute = (entry.mode & kOwnerMayExecute) != 0;
    AGBOX_TRY_VOID(write((may_execute ? "M 100755 inline " : "M 100644 inline ") +
                         quoted_path(path) + "\ndata " + std::to_string(entry.size) + "\n"));
    const bool is_ignore_file = path.substr(path.rfind('/') + 1) == ".gitignore" &&
                                entry.size <= kMaxIgnoreFile &&
                                entry.size <= kMaxIgnoreFiles - ignore_bytes_;
    if (is_ignore_file) ignore_bytes_ += entry.size;
    std::string* const kept = is_ignore_file ? &tree_.ignore_files[path] : nullptr;
    if (kept != nullptr) kept->clear();
    AGBOX_TRY_VOID(write_content(tar, entry, kept));
    return write("\n");
  }

  Result<> write_content(TarReader& tar, const TarEntry& entry, std::string* kept) {
    const auto pass = [&](std::string_view bytes) {
      if (kept != nullptr) *kept += bytes;
      return write(bytes);
    };
    std::vector<TarExtent> extents = entry.extents;
    if (!entry.is_sparse) extents = {{.offset = 0, .length = entry.size}};
    std::uint64_t at = 0;
    std::string_view content;
    for (const TarExtent& extent : extents) {
      AGBOX_TRY_VOID(write_zeros(extent.offset - at));
      at = extent.offset;
      for (std::uint64_t left = extent.length; left > 0;) {
        if (content.empty()) {
          AGBOX_TRY(more, tar.content());
          if (more.empty()) return fail(reason::kInvalidArgument, "the stream ends in a file");
          content = more;
        }
        const std::string_view part = content.substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>(left, content.size())));
        AGBOX_TRY_VOID(pass(part));
        content.remove_prefix(part.size());
        left -= part.size();
        at += part.size();
      }
    }
    return write_zeros(entry.size - at);
  }

  Result<> write_zeros(std::uint64_t count) {
    static constexpr std::array<char, kZeros> kNone{};
    while (count > 0) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(count, kZeros));
      AGBOX_TRY_VOID(write({kNone.data(), part}));
      count -= part;
    }
    return {};
  }

  GitProcess process_;
  const TreeImport& options_;
  ImportedTree tree_;
  std::uint64_t ignore_bytes_ = 0;
};

}  // namespace

std::string quoted_path(std::string_view path) {
  std::string out = "\"";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      std::array<char, 8> octal{};
      std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned>(byte));
      out += octal.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

Result<ImportedTree> import_tree(const GitStore& store, const TreeImport& options,
                                 TarReader::Source source) {
  AGBOX_TRY(process, store.start_import());
  TarReader tar(std::move(source));
  return TreeImporter(std::move(process), options).import(tar);
}

Result<> commit_without(const GitStore& store, const std::string& base,
                        const std::vector<std::string>& paths, const std::string& reference) {
  AGBOX_TRY(process, store.start_import());
  std::string commands = commit_header(reference) + "from " + base + "\n";
  for (const std::string& path : paths) commands += "D " + quoted_path(path) + "\n";
  const int problem = process.write(commands + "\ndone\n");
  const GitOutput done = process.finish();
  if (problem == 0 && done.exit_code == 0) return {};
  return fail(reason::kHostNotReady,
              "git fast-import ended with " + std::to_string(done.exit_code) + ": " + done.error);
}

}  // namespace agbox::cli
