// SPDX-License-Identifier: Apache-2.0
#include "cli/copy_location.h"

namespace agbox::cli {

std::expected<CopyLocation, std::string> parse_copy_location(const std::string& text) {
  if (text.empty()) return std::unexpected("a path must not be empty");
  if (text == "-") return TarStream{};
  const std::size_t colon = text.find(':');
  const bool is_local = text.starts_with('/') || text.starts_with('.') ||
                        colon == std::string::npos || text.find('/') < colon;
  if (is_local) return LocalPath{text};
  const std::string sandbox_id = text.substr(0, colon);
  const std::string path = text.substr(colon + 1);
  if (sandbox_id.empty()) {
    return std::unexpected("\"" + text + "\": the sandbox ID before the colon is missing");
  }
  if (!path.starts_with('/') && path != "~" && !path.starts_with("~/")) {
    return std::unexpected("\"" + text +
                           "\": a path in a sandbox must be absolute or begin with ~/" +
                           ", for example " + sandbox_id + ":/workspace/" + path);
  }
  return SandboxPath{.sandbox_id = sandbox_id, .path = path};
}

}  // namespace agbox::cli
