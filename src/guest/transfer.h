// SPDX-License-Identifier: Apache-2.0
// `agbox-guest put` and `agbox-guest get`: one short-lived process per copy into or out of the
// running container. It runs as the runtime user, or as root with the capabilities of the container
// if the caller wants that: other processes inside race with it, so it has no right that its user
// does not have anyway.
#pragma once

#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"

namespace agbox::guest {

// The command lines. The stream is the standard input of put and the standard output of get; both
// write a FilesDone without the ID to their standard error.
std::vector<std::string> put_command(const v1::PutFiles& order);
std::vector<std::string> get_command(const v1::GetFiles& order);

// `arguments` follow the verb. Return the exit code.
int put(char** arguments);
int get(char** arguments);

}  // namespace agbox::guest
