// SPDX-License-Identifier: Apache-2.0
// Prints the expected docs/configuration_reference.md.
#include <cstdio>

#include "unit/daemon/configuration_reference.h"

int main() {
  return std::fputs(agbox::configuration_reference().c_str(), stdout) < 0 ||
                 std::fflush(stdout) != 0
             ? 1
             : 0;
}
