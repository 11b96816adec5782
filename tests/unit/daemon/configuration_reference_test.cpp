// SPDX-License-Identifier: Apache-2.0
#include "unit/daemon/configuration_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "daemon/configuration.h"

namespace agbox {
namespace {

using testing::HasSubstr;

TEST(ConfigurationReference, InTheTreeIsUpToDate) {
  std::stringstream page;
  page << std::ifstream(AGBOX_SOURCE_DIR "/docs/configuration_reference.md").rdbuf();
  EXPECT_TRUE(page.str() == configuration_reference())
      << "docs/configuration_reference.md differs from the daemon's table of keys; update it:\n"
         "  build/dev/tests/print_configuration_reference > docs/configuration_reference.md";
}

TEST(ConfigurationReference, NamesEveryKeyWithItsDefault) {
  for (const ConfigurationKey& key : configuration_keys()) {
    EXPECT_THAT(configuration_reference(), HasSubstr("| `" + key.full_name() + "` |"));
    EXPECT_FALSE(key.default_value.empty() && key.computed_default.empty()) << key.full_name();
    EXPECT_TRUE(key.meaning.ends_with('.')) << key.full_name();
  }
}

TEST(ConfigurationReference, ShowsAnExampleThatIsValidAndChangesEveryKey) {
  const std::string page = configuration_reference();
  const std::size_t begin = page.find("```toml\n") + 8;
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const auto paths =
      *resolve_fixed_paths(Platform::Linux, {{"HOME", "/h"}, {"XDG_RUNTIME_DIR", "/r"}});
  const auto shown = parse_configuration(example, paths);
  ASSERT_TRUE(shown.has_value()) << shown.error().message();
  const Configuration defaults = default_configuration(paths);
  EXPECT_NE(shown->idle_ttl, defaults.idle_ttl);
  EXPECT_NE(shown->cleanup_ttl, defaults.cleanup_ttl);
  EXPECT_NE(shown->event_retention_ttl, defaults.event_retention_ttl);
  EXPECT_NE(shown->state_root, defaults.state_root);
  EXPECT_NE(shown->log_level, defaults.log_level);
  EXPECT_NE(shown->exec_output_root, defaults.exec_output_root);
  EXPECT_NE(shown->exec_output_template, defaults.exec_output_template);
  EXPECT_NE(shown->exec_output_max, defaults.exec_output_max);
  EXPECT_NE(shown->address_pool, defaults.address_pool);
  EXPECT_NE(shown->dns, defaults.dns);
}

TEST(ConfigurationReference, UnitsOfSizesAreThoseOfTheCode) {
  EXPECT_THAT(configuration_reference(), HasSubstr("always powers of 1024"));
  EXPECT_THAT(configuration_reference(), testing::Not(HasSubstr("1000")));
  const auto paths =
      *resolve_fixed_paths(Platform::Linux, {{"HOME", "/h"}, {"XDG_RUNTIME_DIR", "/r"}});
  for (const std::string size : {"3m", "3MB", "3MiB", "3145728"}) {
    const auto read = parse_configuration("[artifacts]\nexec_output_max = \"" + size + "\"", paths);
    ASSERT_TRUE(read.has_value()) << read.error().message();
    EXPECT_EQ(read->exec_output_max, 3U << 20U) << size;
  }
}

}  // namespace
}  // namespace agbox
