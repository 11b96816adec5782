// SPDX-License-Identifier: Apache-2.0
#include "model/guest/entrypoint_outcome.h"

namespace agbox {

std::string EntrypointFailure::sentence() const {
  std::string text;
  switch (cause) {
    case Cause::Exited:
      text = "the image's entrypoint ended with exit code " + std::to_string(code) +
             " before it ran its arguments";
      break;
    case Cause::Signaled:
      text = "the image's entrypoint was killed by signal " + std::to_string(code) +
             " before it ran its arguments";
      break;
    case Cause::TookTooLong:
      text = "the image's entrypoint did not come to run its arguments in time";
      break;
    case Cause::NotStarted:
      text = "the container's first program could not be started";
      break;
    case Cause::UserCannotRun:
      text = "the runtime user could not run a program in this container";
      if (detail.empty()) text += " (exit code " + std::to_string(code) + ")";
      break;
  }
  if (!detail.empty()) text += ": " + detail;
  const std::size_t end = output_tail.find_last_not_of("\n\t ");
  if (end != std::string::npos) text += "; its last output: " + output_tail.substr(0, end + 1);
  const bool entrypoint =
      cause == Cause::Exited || cause == Cause::Signaled || cause == Cause::TookTooLong;
  if (entrypoint) text += "; create with bypass_entrypoint (--no-entrypoint) to go without it";
  return text;
}

}  // namespace agbox
