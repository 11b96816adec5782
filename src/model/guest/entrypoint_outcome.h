// SPDX-License-Identifier: Apache-2.0
// How the image's entrypoint went, as the guest reports it.
#pragma once

#include <optional>
#include <string>

namespace agbox {

struct EntrypointFailure {
  enum class Cause { Exited, Signaled, TookTooLong, NotStarted, UserCannotRun };
  Cause cause = Cause::Exited;
  int code = 0;             // exit code, or the signal's number
  std::string detail;       // one sentence, if cause and code do not say enough
  std::string output_tail;  // the last that it wrote

  // For people: what happened, the last of the output, and the remedy.
  std::string sentence() const;
  bool operator==(const EntrypointFailure&) const = default;
};

struct EntrypointOutcome {
  std::optional<EntrypointFailure> failure;  // nullopt: the entrypoint was passed
};

}  // namespace agbox
