// SPDX-License-Identifier: Apache-2.0
// The files with the output of execs, in one directory per sandbox, accessible to the daemon's user
// only. A sandbox sees its directory read-only. Everything is opened below a descriptor of the
// configured root, without following symbolic links.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "agbox/store/v1/record.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "execlog/disk_space.h"
#include "execlog/spare_files.h"

namespace agbox {

// Creates it if missing.
Result<std::filesystem::path> make_exec_log_directory(const store::v1::CreatedWith& created_with,
                                                      const std::string& sandbox_id);

// The files of one exec, relative to the root: <name>.stdout.log and <name>.stderr.log.
std::string exec_log_name(const std::string& exec_output_template, const std::string& sandbox_id,
                          const std::string& exec_id);

// The two files of one exec, open for appending.
struct ExecLogs {
  std::string root;  // with every symbolic link resolved
  std::string stdout_path;
  std::string stderr_path;
  // False: files of these names exist already, and are not open. Either the exec ID was used
  // before, or an earlier create of it failed.
  bool are_new = false;
  UniqueFd out;
  UniqueFd err;
  std::uint64_t free_space_reserve = 0;
};

// On the thread of the spare files. RESOURCE_EXHAUSTED if the filesystem has less free space than
// the reserve. An error leaves no file.
Result<ExecLogs> make_exec_logs(const store::v1::CreatedWith& created_with,
                                const std::string& sandbox_id, const std::string& exec_id,
                                SpareFiles& spares);
// Undoes make_exec_logs().
void remove_exec_logs(const ExecLogs& logs);

// The files of a stored exec that never ran, for its start; missing ones are created. They lose
// what they have: that of a create that failed, or a line of append_exec_log_line() after which the
// daemon was killed before the exec's end was on disk.
Result<ExecLogs> reopen_exec_logs(const store::v1::Exec& record);
// The exec is never started: this becomes the last line of its standard error, and repeating it
// changes nothing. `line` is without its end.
Result<> append_exec_log_line(const store::v1::Exec& record, std::string line);

// Removes the output of all execs of one sandbox, a few files at a time and at any depth: there may
// be very many. Repeating it is no error. CANCELLED if the caller was cancelled.
boost::asio::awaitable<Result<>> remove_exec_log_directory(boost::asio::any_io_executor blocking,
                                                           std::filesystem::path directory);
// The sandboxes with a directory below the root, by name; empty if it cannot be read.
Result<std::vector<std::string>> find_exec_log_directories(const std::filesystem::path& root);

// RESOURCE_EXHAUSTED if less space is free than the reserve.
Result<> check_space(const std::string& root, const DiskSpace& space);

}  // namespace agbox
