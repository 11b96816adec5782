// SPDX-License-Identifier: Apache-2.0
#include "execlog/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/open_beneath.h"
#include "base/utf8.h"
#include "model/reasons.h"

namespace agbox {
namespace {

std::unexpected<Error> lost(const std::filesystem::path& path, const std::string& how) {
  return fail(reason::kExecOutputLost, "read " + path.string() + ": " + how);
}

std::string errno_text() {
  return std::generic_category().message(errno);
}

// The file itself may be fine: the process or the host has no free descriptor.
std::unexpected<Error> not_opened(const std::filesystem::path& path, const std::string& how) {
  if (errno != EMFILE && errno != ENFILE) return lost(path, how);
  return fail(reason::kResourceExhausted,
              "read " + path.string() + ": " + errno_text() +
                  "; raise the limit of open files (LimitNOFILE of the service, fs.file-max of the "
                  "host), or read fewer outputs at a time");
}

constexpr std::uint64_t kTailBytes = 1024;

std::string tail_of(const std::string& root, const std::string& path) {
  const auto file = LogFile::open(root, path);
  if (!file) return {};
  const auto size = file->size();
  if (!size) return {};
  const std::uint64_t count = std::min(*size, kTailBytes);
  std::string text(count, '\0');
  if (!file->read(*size - count, text)) return {};
  const std::size_t end = text.find_last_not_of(std::string_view("\0\n\r\t ", 5));
  if (end == std::string::npos) return {};
  std::string shown;
  for (const char c : to_utf8(text.substr(0, end + 1))) {
    if (c == '\n') {
      shown += "\\n";
    } else {
      shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    }
  }
  return shown;
}

}  // namespace

Result<LogFile> LogFile::open(const std::filesystem::path& root,
                              const std::filesystem::path& path) {
  const std::filesystem::path relative = path.lexically_relative(root);
  if (relative.empty() || *relative.begin() == "..") {
    return lost(path, "it does not lie below " + root.string());
  }
  const UniqueFd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return not_opened(path, root.string() + ": " + errno_text());
  // O_NONBLOCK: must not block on a FIFO or a lease.
  LogFile file(open_beneath(directory.get(), relative.c_str(),
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
               path);
  // Its owner may take a lease on it, and commands inside the sandbox run as its owner. The kernel
  // breaks the lease 45 seconds after another process tries to open the file.
  if (!file.fd_ && errno == EAGAIN) {
    return fail(reason::kExecOutputBusy,
                "read " + path.string() +
                    ": a process holds a lease on it (F_SETLEASE), probably in the sandbox; end "
                    "that process, or try again in a minute");
  }
  if (!file.fd_) {
    return not_opened(path, errno == ELOOP
                                ? "there is a symbolic link on the way, which is not followed"
                                : errno_text());
  }
  AGBOX_TRY(ignored, file.size());
  return file;
}

Result<std::uint64_t> LogFile::size() const {
  struct stat found{};
  if (::fstat(fd_.get(), &found) != 0) return lost(path_, errno_text());
  if (!S_ISREG(found.st_mode)) return lost(path_, "it is not a regular file");
  if (found.st_nlink == 0) return lost(path_, "it was removed while it was read");
  if (found.st_nlink > 1) {
    return lost(path_, "it has " + std::to_string(found.st_nlink) +
                           " names, but a log of ours has one; remove the hard links");
  }
  return static_cast<std::uint64_t>(found.st_size);
}

Result<> LogFile::read(std::uint64_t offset, std::span<char> buffer) const {
  while (!buffer.empty()) {
    const ssize_t got =
        ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got == 0) return lost(path_, "it was truncated while it was read");
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return lost(path_, errno_text());
    offset += static_cast<std::uint64_t>(got);
    buffer = buffer.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

std::string exec_output_tail(const store::v1::Exec& record) {
  std::string err = tail_of(record.output_root(), record.stderr_log_path());
  return err.empty() ? tail_of(record.output_root(), record.stdout_log_path()) : err;
}

}  // namespace agbox
