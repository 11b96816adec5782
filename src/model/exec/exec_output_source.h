// SPDX-License-Identifier: Apache-2.0
// Where an exec's output lies, and how to learn of the exec's end: what a reader of output gets
// from Directory::find_exec_output(), on the control thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace agbox {

// Called once, on the control thread, when the end of an exec is published.
using OnExecEnd = std::function<void()>;

struct ExecOutputSource {
  // artifacts.exec_output_root of its sandbox, resolved when the exec began; both files are below.
  std::filesystem::path root;
  std::string stdout_path;
  std::string stderr_path;
  // Its runner writes no more into either file; 0: no limit.
  std::uint64_t limit_bytes = 0;
  // The exec has ended, and all that it wrote until then is in the files. Its background children
  // may still add to them.
  bool is_terminal = false;
  // Called at the end for as long as the caller holds it. Empty if the exec is terminal.
  std::shared_ptr<const OnExecEnd> on_end;
};

}  // namespace agbox
