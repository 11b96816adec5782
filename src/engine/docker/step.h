// SPDX-License-Identifier: Apache-2.0
// A step of an operation in the engine: one await, with a failpoint on both sides.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string_view>
#include <utility>

#include "async/step.h"
#include "engine/engine_error.h"

namespace agbox {

template <class T, class Failure>
EngineAwaitable<T> step(std::string_view name, asio::awaitable<std::expected<T, Failure>> work) {
  return step_as<EngineError>(name, std::move(work));
}

}  // namespace agbox
