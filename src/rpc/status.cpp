// SPDX-License-Identifier: Apache-2.0
#include "rpc/status.h"

#include <string>
#include <string_view>

#include "agbox/rpc/error_details.pb.h"
#include "base/utf8.h"

namespace agbox {
namespace {

constexpr std::string_view kDomain = "agents-sandbox";
// The prefix is that of google.protobuf.Any; our message has the wire format of
// google.rpc.ErrorInfo.
constexpr std::string_view kErrorInfoType = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr std::string_view kEllipsis = "…";

// The message is sent twice: percent-encoded in grpc-message and, with the metadata, base64-encoded
// in grpc-status-details-bin. 3072 + 4/3 (2048 + 1024 + 200 of tags and names) stays below 8 KiB
// and leaves space for the other trailers.
constexpr std::size_t kMaxMessageBytes = 2048;
constexpr std::size_t kMaxEncodedMessageBytes = 3072;
constexpr std::size_t kMaxMetadataBytes = 1024;
constexpr std::size_t kMaxMetadataValueBytes = 256;

std::size_t percent_encoded_size(std::string_view text) {
  std::size_t size = 0;
  for (const char c : text) size += c >= 0x20 && c <= 0x7E && c != '%' ? 1 : 3;
  return size;
}

std::string truncated(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  return std::string(utf8_prefix(text, limit - kEllipsis.size())) + std::string(kEllipsis);
}

std::string wire_message(std::string_view message) {
  std::string text = truncated(to_utf8(message), kMaxMessageBytes);
  // Mostly non-ASCII text: 1024 bytes are at most 3072 when encoded.
  if (percent_encoded_size(text) > kMaxEncodedMessageBytes) {
    text = truncated(text, kMaxEncodedMessageBytes / 3);
  }
  return text;
}

void fill(rpc::ErrorInfo& info, const Error& error) {
  info.set_reason(std::string(error.reason().name));
  info.set_domain(std::string(kDomain));
  std::size_t used = 0;
  for (const auto& [key, value] : error.metadata()) {
    const std::string wire_value = truncated(to_utf8(value), kMaxMetadataValueBytes);
    used += key.size() + wire_value.size() + 8;  // 8: tags and lengths of a map entry
    if (used > kMaxMetadataBytes) break;
    (*info.mutable_metadata())[to_utf8(key)] = wire_value;
  }
}

}  // namespace

grpc::Status to_status(const Error& error) {
  const auto code = static_cast<grpc::StatusCode>(error.reason().code);
  const std::string message = wire_message(error.message());
  rpc::ErrorInfo info;
  fill(info, error);
  // Code and message again: Python's grpc_status throws if they differ from the call's.
  rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::protobuf::Any* detail = details.add_details();
  detail->set_type_url(std::string(kErrorInfoType));
  detail->set_value(info.SerializeAsString());
  return {code, message, details.SerializeAsString()};
}

}  // namespace agbox
