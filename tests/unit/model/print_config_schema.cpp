// SPDX-License-Identifier: Apache-2.0
// Prints the expected docs/sandbox.schema.json.
#include <cstdio>

#include "unit/model/config_schema.h"

int main() {
  return std::fputs(agbox::config_schema().c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
