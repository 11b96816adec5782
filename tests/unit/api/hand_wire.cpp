// SPDX-License-Identifier: Apache-2.0
#include "unit/api/hand_wire.h"

namespace agbox::test {

namespace {

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kLengthDelimited = 2;

std::uint64_t tag(std::uint32_t field, std::uint32_t wire_type) {
  return (std::uint64_t{field} << 3) | wire_type;
}

std::optional<std::uint64_t> take_varint(std::string_view& wire) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !wire.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(wire.front());
    wire.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace

HandEncoder& HandEncoder::varint(std::uint32_t field, std::uint64_t value) {
  append(tag(field, kVarint));
  append(value);
  return *this;
}

HandEncoder& HandEncoder::bytes(std::uint32_t field, std::string_view value) {
  append(tag(field, kLengthDelimited));
  append(value.size());
  wire_ += value;
  return *this;
}

HandEncoder& HandEncoder::message(std::uint32_t field, const HandEncoder& value) {
  return bytes(field, value.wire());
}

HandEncoder& HandEncoder::entry(std::uint32_t field, std::string_view key, std::string_view value) {
  return message(field, HandEncoder().bytes(1, key).bytes(2, value));
}

HandEncoder& HandEncoder::time(std::uint32_t field, std::int64_t seconds, std::int32_t nanos) {
  // Negative numbers travel as 64 bits, sign-extended.
  return message(field, HandEncoder()
                            .varint(1, static_cast<std::uint64_t>(seconds))
                            .varint(2, static_cast<std::uint64_t>(std::int64_t{nanos})));
}

void HandEncoder::append(std::uint64_t value) {
  while (value >= 0x80) {
    wire_ += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  wire_ += static_cast<char>(value);
}

std::optional<std::vector<HandField>> hand_decode(std::string_view wire) {
  std::vector<HandField> fields;
  while (!wire.empty()) {
    const auto head = take_varint(wire);
    if (!head) return std::nullopt;
    HandField field{.number = static_cast<std::uint32_t>(*head >> 3)};
    const auto value = take_varint(wire);
    if (!value) return std::nullopt;
    if ((*head & 7) == kVarint) {
      field.varint = *value;
    } else if ((*head & 7) == kLengthDelimited && *value <= wire.size()) {
      field.bytes = wire.substr(0, *value);
      wire.remove_prefix(*value);
    } else {
      return std::nullopt;  // the contract has no other wire type
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace agbox::test
