// SPDX-License-Identifier: Apache-2.0
// What of a sandbox's place one of its containers has to see. Control passes it from the place to
// the engine.
#pragma once

#include <string>
#include <vector>

namespace agbox {

struct Attachment {
  std::string source;  // on the sandbox's machine
  std::string target;  // inside the container
  bool read_only = true;
};

using Attachments = std::vector<Attachment>;

}  // namespace agbox
