// SPDX-License-Identifier: Apache-2.0
// Copies files between this machine and a running sandbox, with the rules of `docker cp` for where
// they go.
//
//   auto copied = copy_out(client, "box-1", "/workspace/report", "/home/me");  // /home/me/report
//   if (!copied) return report(copied.error());
//
// What comes out of a sandbox is untrusted, and so are the names in it. It is unpacked below the
// target only and through no symbolic link, without setuid and setgid bits, up to a limit. Symbolic
// links are created as they are: they may lead anywhere, so do not follow them blindly.
#pragma once

#include <agbox/file_copy_options.h>
#include <agbox/raw_client.h>

#include <filesystem>
#include <string>

namespace agbox::sdk {

// Copies a file or a directory of this machine into a sandbox. A source that ends with "/." is the
// content of a directory. The target is absolute, or below ~.
Result<FileCopyResult> copy_in(const RawClient& client, const std::filesystem::path& source,
                               const std::string& sandbox_id, const std::string& target,
                               const FileCopyOptions& options = {});

// Copies a file or a directory of a sandbox to this machine. Files belong to the caller. On an
// error, what was copied before stays; each file is complete.
Result<FileCopyResult> copy_out(const RawClient& client, const std::string& sandbox_id,
                                const std::string& source, const std::filesystem::path& target,
                                const FileCopyOptions& options = {});

// Unpacks a tar stream of any program into a directory of a sandbox, which is created if it is
// missing.
Result<FileCopyResult> copy_tar_in(const RawClient& client, int tar, const std::string& sandbox_id,
                                   const std::string& target, const FileCopyOptions& options = {});

// Writes a file or a directory of a sandbox as a tar stream, unchecked.
Result<FileCopyResult> copy_tar_out(const RawClient& client, const std::string& sandbox_id,
                                    const std::string& source, int tar,
                                    const FileCopyOptions& options = {});

}  // namespace agbox::sdk
