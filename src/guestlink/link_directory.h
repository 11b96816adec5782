// SPDX-License-Identifier: Apache-2.0
// The directory that holds one sandbox's socket and is mounted into its container. It lives as long
// as the container: one that is removed and created again is a different directory, and the
// container would keep the old one forever.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/guest/guest_error.h"

namespace agbox::guestlink {

// Identifies a directory regardless of its name; stored with the sandbox.
struct DirectoryIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const DirectoryIdentity&) const = default;
};

class LinkDirectory {
 public:
  // Of connections that wait to be accepted. Any process inside can fill it.
  static constexpr int kQueueLength = 1024;

  // <root>/<16 hex digits of a hash of the sandbox ID>: an ID may have 200 bytes. Of a companion:
  // <that of its sandbox>.companions/<the same of its name>.
  static std::filesystem::path path_of(const std::filesystem::path& root,
                                       std::string_view sandbox_id,
                                       std::string_view companion = {});

  // Creates it if missing, and the root too; 0700.
  static Result<LinkDirectory> make(const std::filesystem::path& root, std::string_view sandbox_id,
                                    std::string_view companion = {});
  // The one that a running container has mounted; an error that says what to do if it is gone or is
  // another one. Unavailable if that cannot be determined now, or no more is known.
  static GuestResult<LinkDirectory> adopt(const std::filesystem::path& root,
                                          std::string_view sandbox_id, DirectoryIdentity expected,
                                          std::string_view companion = {});
  // The directories below the root, by name. Other names are ignored.
  static Result<std::vector<std::filesystem::path>> list(const std::filesystem::path& root);
  // With those of its companions. Succeeds if it does not exist.
  static Result<> remove(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  DirectoryIdentity identity() const { return identity_; }

  // A listening socket under its final name. It appears there only once it listens, so that a guest
  // that sees it can connect; until then it is outside of what the container sees. Unavailable if
  // the host cannot create one now.
  GuestResult<UniqueFd> listen() const;
  void stop_listening() const;

 private:
  LinkDirectory(std::filesystem::path path, UniqueFd fd, DirectoryIdentity identity)
      : path_(std::move(path)), fd_(std::move(fd)), identity_(identity) {}
  static Result<LinkDirectory> open(const std::filesystem::path& path);
  static std::filesystem::path companions_of(const std::filesystem::path& path);
  static std::filesystem::path draft_of(const std::filesystem::path& path);

  std::filesystem::path path_;
  UniqueFd fd_;
  DirectoryIdentity identity_;
};

}  // namespace agbox::guestlink
