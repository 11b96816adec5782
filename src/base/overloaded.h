// SPDX-License-Identifier: Apache-2.0
// Several lambdas as one visitor of a std::variant.
#pragma once

namespace agbox {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace agbox
