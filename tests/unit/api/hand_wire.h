// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format by hand: tags, varints and length-delimited fields. It knows no
// generated class, so that a wrong number or type in the .proto files cannot hide on both sides of
// a test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::test {

class HandEncoder {
 public:
  HandEncoder& varint(std::uint32_t field, std::uint64_t value);
  // Strings, bytes and nested messages look the same on the wire.
  HandEncoder& bytes(std::uint32_t field, std::string_view value);
  HandEncoder& message(std::uint32_t field, const HandEncoder& value);
  // One entry of a map<string, string>.
  HandEncoder& entry(std::uint32_t field, std::string_view key, std::string_view value);
  // google.protobuf.Duration and Timestamp have the same shape.
  HandEncoder& time(std::uint32_t field, std::int64_t seconds, std::int32_t nanos);

  const std::string& wire() const { return wire_; }

 private:
  void append(std::uint64_t value);
  std::string wire_;
};

struct HandField {
  std::uint32_t number = 0;
  std::uint64_t varint = 0;  // of wire type 0
  std::string bytes = {};    // of wire type 2

  bool operator==(const HandField&) const = default;
};

// The fields in the order of the wire; nothing where the bytes are not a message.
std::optional<std::vector<HandField>> hand_decode(std::string_view wire);

}  // namespace agbox::test
