// SPDX-License-Identifier: Apache-2.0
// Limits of copies between this machine and a running sandbox, and what was copied.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace agbox::sdk {

struct FileCopyProgress {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of files, or of the stream if it is passed on as it is
};

struct FileCopyOptions {
  // Root of the sandbox reads or writes. By default its runtime user does.
  bool as_root = false;
  std::uint64_t max_entries = 2'000'000;
  // Of files, without holes of sparse files. A sandbox can send much more than it stores.
  std::uint64_t max_bytes = std::uint64_t{64} << 30;
  // Called often, on the calling thread.
  std::function<void(const FileCopyProgress&)> on_progress = {};
  // Ends the copy with ErrorKind::Cancelled.
  std::stop_token stop = {};
};

struct FileCopyResult {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  // How many entries were left out (FIFOs, sockets, devices) or changed while they were read, and
  // the first of them, for people.
  std::uint64_t notes = 0;
  std::string first_note = {};
};

}  // namespace agbox::sdk
