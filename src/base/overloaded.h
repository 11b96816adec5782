// SPDX-License-Identifier: Apache-2.0
// Combines lambdas into one visitor for std::variant.
#pragma once

namespace agbox {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace agbox
