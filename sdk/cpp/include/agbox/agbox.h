// SPDX-License-Identifier: Apache-2.0
// Run commands in sandboxes from a C++ program: docs/sdk_cpp_usage.md. This is the header that
// programs include.
//
//   auto client = agbox::Client::open();
//   auto box = client->create({.image = "debian:12"});
//   if (!box) return complain(box.error());
//   auto result = box->run({"sh", "-c", "echo hello; exit 3"});
//   if (result) std::cout << result->out << result->exit_code;
//
// Everything is defined in agbox::sdk.
#pragma once

#include <agbox/client.h>

namespace agbox {

using namespace sdk;

}  // namespace agbox
