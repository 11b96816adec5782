// SPDX-License-Identifier: Apache-2.0
// Formats protobuf messages as JSON: the protobuf JSON mapping with the field names of the .proto
// files, all fields present, two spaces of indentation and a trailing newline.
//
// Not protobuf's own printer, because that omits unset messages and scripts rely on null.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <string>

namespace agbox::cli {

std::string message_json(const google::protobuf::Message& message);

// The same on one line, for streams of messages.
std::string message_json_line(const google::protobuf::Message& message);

// The value of one field on one line, a text or an enumerator without quotes; empty if it is not
// set. With a key, that entry of a map.
std::string field_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field,
                       const std::optional<std::string>& key = std::nullopt);

}  // namespace agbox::cli
