// SPDX-License-Identifier: Apache-2.0
// How our coroutines wait for an operation of Asio: what went wrong comes back as the first value,
// not as an exception, because a connection that breaks is an everyday event.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace agbox {

inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace agbox
