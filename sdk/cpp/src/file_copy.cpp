// SPDX-License-Identifier: Apache-2.0
#include <agbox/file_copy.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_io.h"
#include "base/result.h"
#include "base/tar/live_tree_packer.h"
#include "base/tar/target_unpacker.h"
#include "base/unique_fd.h"

namespace agbox::sdk {

namespace {

// After the end of an archive, which tar programs fill up with zeros.
// Other users of this machine may not write what a sandbox says that they may.
constexpr mode_t kKeptBits = 0755;
constexpr std::size_t kMaxAfterEnd = std::size_t{1} << 20;

// Of this machine.
Error local_error(const agbox::Error& error) {
  return {.kind = ErrorKind::LocalFile,
          .code = static_cast<StatusCode>(error.reason().code),
          .reason = std::string(error.reason().name),
          .message = error.message()};
}

Error incomplete() {
  return {.kind = ErrorKind::LocalFile,
          .code = StatusCode::DataLoss,
          .message = "the sandbox ended the stream without its end: the copy is incomplete"};
}

Error stopped() {
  return {.kind = ErrorKind::Cancelled, .code = StatusCode::Cancelled, .message = "cancelled"};
}

v1::CopyInTarget target_of(const std::string& sandbox_id, const std::string& path,
                           v1::CopyPlacement placement, const FileCopyOptions& options) {
  v1::CopyInTarget target;
  target.set_sandbox_id(sandbox_id);
  target.set_path(path);
  target.set_placement(placement);
  target.set_as_root(options.as_root);
  return target;
}

CopyOutStream open_out(const RawClient& client, const std::string& sandbox_id,
                       const std::string& path, const FileCopyOptions& options) {
  v1::CopyOutRequest request;
  request.set_sandbox_id(sandbox_id);
  request.set_path(path);
  request.set_as_root(options.as_root);
  return client.copy_out(request);
}

// The name that the root of a path has; empty if the path is the content of a directory.
std::string root_name_of(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view last = path.substr(path.rfind('/') + 1);
  return last == "." || last == ".." || last == "~" ? std::string() : std::string(last);
}

void fill(FileCopyResult& result, const v1::CopySummary& summary) {
  result.notes = summary.notes();
  result.first_note = summary.first_note();
}

TreeProgress progress_of(const FileCopyOptions& options) {
  if (!options.on_progress) return {};
  return [&options](const TreeCounts& counts) {
    options.on_progress({.entries = counts.entries, .bytes = counts.bytes});
  };
}

// The bytes of a CopyOut call, for the unpacker.
class SandboxTar {
 public:
  explicit SandboxTar(CopyOutStream& stream) : stream_(stream) {}

  // Stops at the first error, which problem() has then.
  std::expected<std::size_t, int> read(std::span<char> into) {
    while (unread_.empty() && !summary_) {
      auto message = stream_.next();
      if (!message) {
        problem_ = message.error();
        return std::unexpected(EIO);
      }
      if (!*message) {
        problem_ = incomplete();
        return std::unexpected(EIO);
      }
      take(std::move(**message));
    }
    const std::size_t size = std::min(into.size(), unread_.size());
    std::ranges::copy(unread_.substr(0, size), into.begin());
    unread_.remove_prefix(size);
    return size;
  }

  // Reads on after the end of the archive, up to the end of the call.
  Result<v1::CopySummary> finish() {
    std::size_t skipped = unread_.size();
    while (skipped <= kMaxAfterEnd) {
      auto message = stream_.next();
      if (!message) return std::unexpected(message.error());
      if (!*message && !summary_) return std::unexpected(incomplete());
      if (!*message) return *summary_;
      take(std::move(**message));
      skipped += unread_.size();
    }
    return std::unexpected(Error{.kind = ErrorKind::LocalFile,
                                 .code = StatusCode::DataLoss,
                                 .message = "the sandbox sent more after the end of the archive"});
  }

  const std::optional<Error>& problem() const { return problem_; }

 private:
  void take(v1::CopyOutResponse message) {
    if (message.has_summary()) summary_ = message.summary();
    message_ = std::move(message);
    unread_ = message_.data();
  }

  CopyOutStream& stream_;
  v1::CopyOutResponse message_;
  std::string_view unread_;  // of the message
  std::optional<v1::CopySummary> summary_;
  std::optional<Error> problem_;
};

// Ends a copy in with the daemon's answer, which is the better reason if it ended the call.
Result<FileCopyResult> finish_in(CopyInStream& stream, const std::stop_token& stop,
                                 const TreeNotes& notes) {
  auto response = stream.finish();
  if (!response && stop.stop_requested()) return std::unexpected(stopped());
  if (!response) return std::unexpected(response.error());
  return FileCopyResult{.entries = response->entries(),
                        .bytes = response->bytes(),
                        .notes = notes.count,
                        .first_note = notes.first};
}

}  // namespace

Result<FileCopyResult> copy_in(const RawClient& client, const std::filesystem::path& source,
                               const std::string& sandbox_id, const std::string& target,
                               const FileCopyOptions& options) {
  if (source.empty()) {
    return std::unexpected(
        local_error({reason::kInvalidArgument, "the path of the source must not be empty"}));
  }
  CopyInStream stream =
      client.copy_in(target_of(sandbox_id, target, v1::COPY_PLACEMENT_ROOT, options));
  const std::stop_callback on_stop(options.stop, [&stream] { stream.cancel(); });
  bool has_ended = false;  // by the daemon
  const auto sink = [&](std::string_view bytes) -> agbox::Result<> {
    if (stream.write(bytes)) return {};
    has_ended = true;
    return fail(reason::kCancelled, "the call has ended");
  };
  const auto packed =
      pack_live_tree(source.string(), {.entries = options.max_entries, .bytes = options.max_bytes},
                     sink, progress_of(options));
  if (!packed && !has_ended) {
    // Without the end of the archive the sandbox does not take it for complete.
    stream.cancel();
    return std::unexpected(local_error(packed.error()));
  }
  return finish_in(stream, options.stop, packed ? packed->notes : TreeNotes{});
}

Result<FileCopyResult> copy_tar_in(const RawClient& client, int tar, const std::string& sandbox_id,
                                   const std::string& target, const FileCopyOptions& options) {
  CopyInStream stream =
      client.copy_in(target_of(sandbox_id, target, v1::COPY_PLACEMENT_CONTENT, options));
  // A read may last forever, so a stop is waited for next to it.
  const UniqueFd stop_event(::eventfd(0, EFD_CLOEXEC));
  if (!stop_event) return std::unexpected(local_error(errno_error("create an eventfd", errno)));
  const std::stop_callback on_stop(options.stop, [&] {
    stream.cancel();
    ::eventfd_write(stop_event.get(), 1);
  });
  FileCopyProgress progress;
  std::array<char, 65536> chunk;
  while (true) {
    std::array<pollfd, 2> polled{{{tar, POLLIN, 0}, {stop_event.get(), POLLIN, 0}}};
    const int ready = ::poll(polled.data(), polled.size(), -1);
    if (options.stop.stop_requested()) return std::unexpected(stopped());
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t got = ready < 0 ? -1 : ::read(tar, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int problem = errno;
      stream.cancel();
      return std::unexpected(local_error(errno_error("read the tar stream", problem)));
    }
    if (got == 0) break;
    if (!stream.write({chunk.data(), static_cast<std::size_t>(got)})) break;
    progress.bytes += static_cast<std::uint64_t>(got);
    if (options.on_progress) options.on_progress(progress);
  }
  return finish_in(stream, options.stop, {});
}

Result<FileCopyResult> copy_out(const RawClient& client, const std::string& sandbox_id,
                                const std::string& source, const std::filesystem::path& target,
                                const FileCopyOptions& options) {
  CopyOutStream stream = open_out(client, sandbox_id, source, options);
  const std::stop_callback on_stop(options.stop, [&stream] { stream.cancel(); });
  SandboxTar tar(stream);
  const std::string root_name = root_name_of(source);
  const UnpackTarget place{
      .path = target.empty() ? "." : target.string(),
      .placement = root_name.empty() ? TreePlacement::Content : TreePlacement::Root,
      .root_name = root_name,
      .refuses_link = true,
      .kept_bits = kKeptBits};
  const auto unpacked = unpack_at(
      place, {.entries = options.max_entries, .bytes = options.max_bytes},
      [&tar](std::span<char> into) { return tar.read(into); }, progress_of(options));
  if (options.stop.stop_requested()) return std::unexpected(stopped());
  if (tar.problem()) return std::unexpected(*tar.problem());
  if (!unpacked) return std::unexpected(local_error(unpacked.error()));
  const auto summary = tar.finish();
  if (!summary) return std::unexpected(summary.error());
  FileCopyResult result{.entries = unpacked->entries, .bytes = unpacked->bytes};
  fill(result, *summary);
  return result;
}

Result<FileCopyResult> copy_tar_out(const RawClient& client, const std::string& sandbox_id,
                                    const std::string& source, int tar,
                                    const FileCopyOptions& options) {
  CopyOutStream stream = open_out(client, sandbox_id, source, options);
  const std::stop_callback on_stop(options.stop, [&stream] { stream.cancel(); });
  FileCopyProgress progress;
  std::optional<v1::CopySummary> summary;
  while (true) {
    auto message = stream.next();
    if (options.stop.stop_requested()) return std::unexpected(stopped());
    if (!message) return std::unexpected(message.error());
    if (!*message) break;
    if ((*message)->has_summary()) summary = (*message)->summary();
    if (const int problem = write_all(tar, (*message)->data())) {
      return std::unexpected(local_error(errno_error("write the tar stream", problem)));
    }
    progress.bytes += (*message)->data().size();
    if (options.on_progress) options.on_progress(progress);
  }
  if (!summary) return std::unexpected(incomplete());
  FileCopyResult result{.entries = summary->entries(), .bytes = summary->bytes()};
  fill(result, *summary);
  return result;
}

}  // namespace agbox::sdk
