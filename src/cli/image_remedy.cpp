// SPDX-License-Identifier: Apache-2.0
#include "cli/image_remedy.h"

#include <cstddef>

namespace agbox::cli {

std::string image_remedy(std::string_view failure) {
  constexpr std::string_view kOwn = "ghcr.io/agents-sandbox/";
  const std::size_t at = failure.find(kOwn);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = failure.substr(at + kOwn.size());
  const std::string name(rest.substr(0, rest.find_first_of(":@ ")));
  // These two are built on the third.
  const bool has_base = name == "openclaw-runtime" || name == "paseo-runtime";
  return "\n  Build the image:    scripts/build-images " +
         std::string(has_base ? "coding-runtime " : "") + name +
         ", in a clone of the repository\n  Use another image:  --image IMAGE";
}

}  // namespace agbox::cli
