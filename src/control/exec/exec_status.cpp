// SPDX-License-Identifier: Apache-2.0
#include "control/exec/exec_status.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "model/exec/exec_request.h"

namespace agbox {
namespace {

// A protobuf duration holds ten thousand years; a guest may report more.
google::protobuf::Duration to_duration(std::uint64_t microseconds) {
  using google::protobuf::util::TimeUtil;
  constexpr auto longest = static_cast<std::uint64_t>(TimeUtil::kDurationMaxSeconds);
  const auto seconds = std::min(microseconds / 1'000'000, longest);
  google::protobuf::Duration duration;
  duration.set_seconds(static_cast<std::int64_t>(seconds));
  duration.set_nanos(static_cast<std::int32_t>(microseconds % 1'000'000 * 1'000));
  return duration;
}

}  // namespace

v1::ExecStatus to_exec_status(const ExecRecord& exec, std::uint64_t last_event_sequence) {
  const store::v1::Exec& record = exec.record;
  v1::ExecStatus status;
  status.set_exec_id(exec.request.exec_id());
  status.set_sandbox_id(exec.sandbox_id);
  status.set_state(exec.state);
  *status.mutable_command() = exec.request.command();
  status.set_cwd(exec.request.cwd());
  *status.mutable_env_overrides() = exec.request.env_overrides();
  status.set_exit_code(record.exit_code());
  status.set_error(record.error_message());
  status.set_last_event_sequence(last_event_sequence);
  status.set_stdout_log_path(record.stdout_log_path());
  status.set_stderr_log_path(record.stderr_log_path());
  *status.mutable_started_at() = record.started_at();
  if (record.has_ended_at()) *status.mutable_ended_at() = record.ended_at();
  status.set_output_truncated(record.output_truncated());
  if (record.has_usage()) {
    v1::ExecUsage* usage = status.mutable_usage();
    *usage->mutable_user_cpu() = to_duration(record.usage().user_cpu_microseconds());
    *usage->mutable_system_cpu() = to_duration(record.usage().system_cpu_microseconds());
    usage->set_peak_memory_bytes(record.usage().peak_memory_bytes());
  }
  status.set_error_code(record.error_code());
  status.set_cancel_requested(record.cancel_requested());
  status.set_user(exec.request.user());
  status.set_container(exec.request.container());
  status.set_stdin(has_input(exec.request));
  status.set_tty(exec.request.has_terminal());
  if (exec.request.has_timeout()) *status.mutable_timeout() = exec.request.timeout();
  return status;
}

}  // namespace agbox
