// SPDX-License-Identifier: Apache-2.0
// `agbox-guest receive`: one short-lived process per tree that the daemon sends. Because it is
// executed again as root, it has the capabilities of the container, which the guest has dropped.
#pragma once

#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guest/account_files.h"

namespace agbox::guest {

// The command line for an order; the stream is its standard input, and it writes its report, a
// TreeReceived without the ID, to its standard output.
std::vector<std::string> receive_command(const v1::ReceiveTree& order, const Identity& user);

// `arguments` follow the verb. Returns the exit code.
int receive(char** arguments);

}  // namespace agbox::guest
