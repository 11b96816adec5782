// SPDX-License-Identifier: Apache-2.0
// Files that are copied into or out of a running container as a tar stream, and what its guest
// reports of that. The stream itself goes through a pipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

struct FileOrder {
  enum class Direction { In, Out };

  Direction direction = Direction::In;
  std::string path;         // absolute, inside the container
  bool is_content = false;  // of In: see TreePlacement
  bool as_root = false;     // otherwise as the runtime user
};

// Our end of the pipe: of In the writing one, of Out the reading one. It does not block.
struct FilePipe {
  UniqueFd end;
};

struct FilesReport {
  // Names the path; nullopt if everything was copied.
  std::optional<Error> failure{};
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  // How many entries were left out or differ, and the first of them, for people.
  std::uint64_t notes = 0;
  std::string first_note{};
};

}  // namespace agbox
