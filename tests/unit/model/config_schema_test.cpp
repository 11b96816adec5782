// SPDX-License-Identifier: Apache-2.0
#include "unit/model/config_schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace agbox {
namespace {

TEST(ConfigSchema, InTheTreeIsUpToDate) {
  std::stringstream file;
  file << std::ifstream(AGBOX_SOURCE_DIR "/docs/sandbox.schema.json").rdbuf();
  EXPECT_TRUE(file.str() == config_schema())
      << "docs/sandbox.schema.json differs from the keys of config_yaml; update it:\n"
         "  build/dev/tests/print_config_schema > docs/sandbox.schema.json";
}

}  // namespace
}  // namespace agbox
