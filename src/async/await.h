// SPDX-License-Identifier: Apache-2.0
// Completion token of our coroutines: the error code comes back as the first value instead of an
// exception, because a broken connection is not exceptional.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace agbox {

inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace agbox
