// SPDX-License-Identifier: Apache-2.0
// A step of a sandbox's operation: one await, with a failpoint on both sides.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string_view>
#include <utility>

#include "async/step.h"
#include "control/sandbox/operations/operation.h"

namespace agbox {

template <class T, class Failure>
boost::asio::awaitable<OperationResult<T>> step(
    std::string_view name, boost::asio::awaitable<std::expected<T, Failure>> work) {
  return step_as<OperationFailure>(name, std::move(work));
}

}  // namespace agbox
