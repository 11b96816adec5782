// SPDX-License-Identifier: Apache-2.0
// The folders that hold what execs write, one per sandbox, for the daemon's user alone.
#pragma once

#include <filesystem>
#include <string>

#include "agbox/store/v1/record.pb.h"
#include "base/result.h"

namespace agbox {

// Makes it where it is not there yet. A sandbox sees it read-only.
Result<std::filesystem::path> make_exec_log_folder(const store::v1::CreatedWith& created_with,
                                                   const std::string& sandbox_id);

}  // namespace agbox
