// SPDX-License-Identifier: Apache-2.0
// Iterates over the attributes of a netlink message; libmnl's loops are C macros.
#pragma once

#include <libmnl/libmnl.h>

#include <cstddef>

namespace agbox {

// Calls `each` with every attribute in [begin, end).
template <class Each>
void for_each_attribute(const void* begin, const void* end, Each each) {
  const auto* attribute = static_cast<const nlattr*>(begin);
  const auto left = [&] {  // in bytes
    return static_cast<int>(static_cast<const char*>(end) -
                            reinterpret_cast<const char*>(attribute));
  };
  while (mnl_attr_ok(attribute, left())) {
    each(attribute);
    attribute = mnl_attr_next(attribute);
  }
}

// The attributes after a header of this size.
template <class Each>
void for_each_attribute(const nlmsghdr* message, std::size_t header_size, Each each) {
  for_each_attribute(mnl_nlmsg_get_payload_offset(message, header_size),
                     mnl_nlmsg_get_payload_tail(message), each);
}

}  // namespace agbox
