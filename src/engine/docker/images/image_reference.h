// SPDX-License-Identifier: Apache-2.0
// The name of an image as people write it, taken apart: "busybox" is
// docker.io/library/busybox:latest. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

struct ImageReference {
  std::string registry;    // docker.io, localhost:5000
  std::string repository;  // library/busybox
  std::string tag;         // empty only where there is a digest
  std::string digest;      // sha256:...; empty where none was given

  // registry/repository
  std::string name() const { return registry + "/" + repository; }
  // The one spelling of this image, with tag and digest.
  std::string canonical() const;
  // Under which key credentials for the registry are kept.
  std::string credentials_key() const;

  bool operator==(const ImageReference&) const = default;
};

Result<ImageReference> parse_image_reference(std::string_view text);

// sha256: and 64 hexadecimal digits: an image of this engine, which no registry can be asked for.
bool is_image_id(std::string_view text);

}  // namespace agbox
