// SPDX-License-Identifier: Apache-2.0
// Sends a request that creates something under a new ID, at most once however often it is retried:
// a daemon may accept it and exit before its response arrives.
#pragma once

#include <agbox/reconnect_backoff.h>

#include <type_traits>

namespace agbox::sdk {

// An ID that exists after a retry is of the first attempt: the response is then empty.
template <class Call>
std::invoke_result_t<Call> create_once(ReconnectBackoff& backoff, Call call) {
  bool was_retried = false;
  return backoff.retry([&] {
    auto response = call();
    const bool exists = !response && response.error().code == StatusCode::AlreadyExists;
    if (exists && was_retried) response = typename std::invoke_result_t<Call>::value_type();
    was_retried = true;
    return response;
  });
}

}  // namespace agbox::sdk
