// SPDX-License-Identifier: Apache-2.0
// config.toml with any content: it is understood and in range, or refused in one readable sentence.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "daemon/configuration.h"

namespace {

using namespace agbox;

const FixedPaths& paths() {
  static const FixedPaths fixed =
      *resolve_fixed_paths(Platform::Linux, {{"HOME", "/home/u"}, {"XDG_RUNTIME_DIR", "/run/u"}});
  return fixed;
}

void check_accepted(const Configuration& configuration) {
  AGBOX_CHECK(configuration.idle_ttl.count() >= 0, "idle_ttl");
  AGBOX_CHECK(configuration.cleanup_ttl.count() >= 0, "cleanup_ttl");
  AGBOX_CHECK(configuration.event_retention_ttl.count() >= 0, "event_retention_ttl");
  AGBOX_CHECK(configuration.state_root.is_absolute(), "state_root");
  AGBOX_CHECK(configuration.exec_output_root.is_absolute(), "exec_output_root");
  AGBOX_CHECK(configuration.exec_output_template.starts_with("{sandbox_id}/"), "template");
  AGBOX_CHECK(configuration.exec_output_template.find("..") == std::string::npos ||
                  !std::filesystem::path(configuration.exec_output_template)
                       .lexically_normal()
                       .string()
                       .starts_with(".."),
              "the template leaves its root");
  AGBOX_CHECK(configuration.address_pool.prefix_length <= 28, "address_pool");
  AGBOX_CHECK(std::ranges::none_of(configuration.dns, &Ipv4Address::is_loopback), "dns");
}

void check_refused(std::string_view sentence) {
  AGBOX_CHECK(sentence.size() < 4096, "the sentence is short");
  AGBOX_CHECK(to_utf8(sentence) == sentence, "the sentence is UTF-8");
  AGBOX_CHECK(
      std::ranges::none_of(
          sentence, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }),
      "the sentence has no control characters");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // reinterpret_cast: libFuzzer gives bytes, the file is text.
  const auto configuration =
      parse_configuration({reinterpret_cast<const char*>(data), size}, paths());
  if (configuration) {
    check_accepted(*configuration);
  } else {
    check_refused(configuration.error().message());
  }
  return 0;
}
