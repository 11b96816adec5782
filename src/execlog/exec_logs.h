// SPDX-License-Identifier: Apache-2.0
// The files that hold what execs write, in one folder per sandbox, for the daemon's user alone. A
// sandbox sees its folder read-only. Everything is opened below a descriptor of the configured root
// and through no symbolic link.
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
#include "execlog/disk_room.h"
#include "execlog/spare_files.h"

namespace agbox {

// Makes it where it is not there yet.
Result<std::filesystem::path> make_exec_log_folder(const store::v1::CreatedWith& created_with,
                                                   const std::string& sandbox_id);

// Where the files of one exec are, relative to the root: <name>.stdout.log and <name>.stderr.log.
std::string exec_log_name(const std::string& exec_output_template, const std::string& sandbox_id,
                          const std::string& exec_id);

// The two files of one exec, open for appending.
struct ExecLogs {
  std::string root;  // with every symbolic link resolved
  std::string stdout_path;
  std::string stderr_path;
  // Not true: files of these names were there before, and are not open. Either the exec id was used
  // already, or an earlier create of it came to nothing.
  bool are_new = false;
  UniqueFd out;
  UniqueFd err;
  std::uint64_t free_space_reserve = 0;
};

// RESOURCE_EXHAUSTED while the filesystem has less room than the reserve. An error leaves no file.
Result<ExecLogs> make_exec_logs(const store::v1::CreatedWith& created_with,
                                const std::string& sandbox_id, const std::string& exec_id,
                                SpareFiles& spares);
// Takes back what make_exec_logs() made.
void remove_exec_logs(const ExecLogs& logs);

enum class EarlierOutput { Keep, Discard };
// The files of an exec that is stored already; those that are missing are made.
Result<ExecLogs> reopen_exec_logs(const store::v1::Exec& record, EarlierOutput earlier);

// Removes all that execs of one sandbox wrote, a few files at a time, however deep they lie: there
// may be very many. The second time is not an error. CANCELLED where the caller was cancelled
// meanwhile.
boost::asio::awaitable<Result<>> remove_exec_log_folder(boost::asio::any_io_executor blocking,
                                                        std::filesystem::path folder);
// The sandboxes whose folders are below the root, by their names; none where it cannot be read.
Result<std::vector<std::string>> find_exec_log_folders(const std::filesystem::path& root);

// RESOURCE_EXHAUSTED where less is left than has to stay free.
Result<> check_room(const std::string& root, const DiskRoom& room);

}  // namespace agbox
