// SPDX-License-Identifier: Apache-2.0
#include "cli/confirmation.h"

#include <unistd.h>

namespace agbox::cli {

bool is_confirmed(Console& console, const std::string& question) {
  static_cast<void>(console.write_stderr(question + " [y/N] "));
  std::string answer;
  for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) answer += c;
  return answer == "y" || answer == "Y";
}

}  // namespace agbox::cli
