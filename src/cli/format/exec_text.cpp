// SPDX-License-Identifier: Apache-2.0
#include "cli/format/exec_text.h"

namespace agbox::cli {

std::string state_text(v1::ExecState state) {
  switch (state) {
    case v1::EXEC_STATE_UNSPECIFIED:
      return "Unspecified";
    case v1::EXEC_STATE_RUNNING:
      return "Running";
    case v1::EXEC_STATE_FINISHED:
      return "Finished";
    case v1::EXEC_STATE_FAILED:
      return "Failed";
    case v1::EXEC_STATE_CANCELLED:
      return "Cancelled";
    default:
      return "State " + std::to_string(state);
  }
}

std::string command_text(const v1::ExecStatus& exec) {
  std::string out;
  for (const std::string& word : exec.command()) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string truncation_text(const v1::ExecStatus& exec) {
  if (!exec.output_truncated()) return "";
  return "warning: output of exec " + exec.exec_id() +
         " is incomplete: it exceeded artifacts.exec_output_max or the disk was full";
}

}  // namespace agbox::cli
