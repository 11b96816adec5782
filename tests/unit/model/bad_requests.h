// SPDX-License-Identifier: Apache-2.0
// Creates that must be refused, made up from a seed: a good request with one fault in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agbox/v1/service.pb.h"

namespace agbox {

struct BadRequest {
  v1::CreateSandboxRequest request;
  std::string names;  // what the refusal has to name: the field, or the position
};

std::vector<BadRequest> bad_requests(std::uint32_t seed, std::size_t count);

}  // namespace agbox
