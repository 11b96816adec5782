// SPDX-License-Identifier: Apache-2.0
// What a guest reports of a pipe that it was given for the input of an exec.
#pragma once

#include <cstdint>
#include <string>

namespace agbox {

struct InputReport {
  enum class Outcome {
    Attached,
    Closed,  // the input has ended, the command does not read it any more, or it has ended
    Failed,
  };
  Outcome outcome = Outcome::Attached;
  // How many bytes the input of the exec has before those of this pipe.
  std::uint64_t position = 0;
  std::string detail;  // why it failed, one sentence
};

}  // namespace agbox
