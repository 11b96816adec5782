// SPDX-License-Identifier: Apache-2.0
// An image name, parsed: "busybox" is docker.io/library/busybox:latest. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

struct ImageReference {
  std::string registry;    // docker.io, localhost:5000
  std::string repository;  // library/busybox
  std::string tag;         // empty only if there is a digest
  std::string digest;      // sha256:...; may be empty

  // registry/repository
  std::string name() const { return registry + "/" + repository; }
  // The canonical name, with tag and digest.
  std::string canonical() const;
  // The key of the registry's credentials.
  std::string credentials_key() const;

  bool operator==(const ImageReference&) const = default;
};

Result<ImageReference> parse_image_reference(std::string_view text);

// sha256: and 64 hexadecimal digits: a local image ID, which cannot be pulled.
bool is_image_id(std::string_view text);

}  // namespace agbox
