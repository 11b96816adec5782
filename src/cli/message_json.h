// SPDX-License-Identifier: Apache-2.0
// Messages of the contract as JSON for people and scripts: the protobuf JSON mapping with the names
// of the .proto files, every field present, two spaces of indentation and a newline at the end.
//
// Our own, because protobuf's printer leaves unset messages out where scripts rely on null.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace agbox::cli {

std::string message_json(const google::protobuf::Message& message);

// The same on one line, for streams of messages.
std::string message_json_line(const google::protobuf::Message& message);

}  // namespace agbox::cli
