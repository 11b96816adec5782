// SPDX-License-Identifier: Apache-2.0
// The checks that `agbox doctor` runs without the daemon. Pure.
#pragma once

#include <agbox/daemon_inspection.h>
#include <agbox/v1/service.pb.h>

#include <string>

namespace agbox::cli {

// `why` the daemon is unreachable, in one sentence.
v1::DiagnoseResponse judge_unreachable_daemon(const std::string& why,
                                              const sdk::DaemonInspection& inspection);

}  // namespace agbox::cli
