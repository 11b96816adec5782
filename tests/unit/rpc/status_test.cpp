// SPDX-License-Identifier: Apache-2.0
#include "rpc/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agbox/rpc/error_details.pb.h"
#include "base/utf8.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using testing::EndsWith;
using testing::SizeIs;
using testing::StartsWith;

// What a client decodes from the trailer, checked as Python's grpc_status does.
rpc::ErrorInfo decode(const grpc::Status& status) {
  rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  EXPECT_THAT(details.details(), SizeIs(1));
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  rpc::ErrorInfo info;
  EXPECT_TRUE(info.ParseFromString(details.details(0).value()));
  return info;
}

// As encoded by gRPC.
std::size_t trailer_bytes(const grpc::Status& status) {
  std::size_t bytes = 0;
  for (const char c : status.error_message()) bytes += c >= 0x20 && c <= 0x7E && c != '%' ? 1 : 3;
  return bytes + (status.error_details().size() + 2) / 3 * 4;
}

TEST(ToStatus, CarriesReasonDomainAndMetadata) {
  const grpc::Status status = to_status(
      Error(reason::kSandboxNotFound, "sandbox s-1 was not found", {{"sandbox_id", "s-1"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "sandbox s-1 was not found");
  const rpc::ErrorInfo info = decode(status);
  EXPECT_EQ(info.reason(), "SANDBOX_NOT_FOUND");
  EXPECT_EQ(info.domain(), "agents-sandbox");
  ASSERT_EQ(info.metadata().size(), 1U);
  EXPECT_EQ(info.metadata().at("sandbox_id"), "s-1");
}

TEST(ToStatus, HasOneCodePerReason) {
  using enum grpc::StatusCode;
  const std::pair<Reason, grpc::StatusCode> rows[] = {
      {reason::kInvalidArgument, INVALID_ARGUMENT},
      {reason::kSandboxNotFound, NOT_FOUND},
      {reason::kSandboxIdAlreadyExists, ALREADY_EXISTS},
      {reason::kSandboxNotReady, FAILED_PRECONDITION},
      {reason::kSandboxInvalidState, FAILED_PRECONDITION},
      {reason::kSandboxEventSequenceExpired, OUT_OF_RANGE},
      {reason::kExecNotFound, NOT_FOUND},
      {reason::kExecIdAlreadyExists, ALREADY_EXISTS},
      {reason::kExecAlreadyTerminal, FAILED_PRECONDITION},
      {reason::kExecOutputOutOfRange, OUT_OF_RANGE},
      {reason::kExecOutputLost, DATA_LOSS},
      {reason::kExecOutputBusy, UNAVAILABLE},
      {reason::kExecOutputUnavailable, FAILED_PRECONDITION},
      {reason::kEngineUnavailable, UNAVAILABLE},
      {reason::kResourceExhausted, RESOURCE_EXHAUSTED},
      {reason::kUnimplemented, UNIMPLEMENTED},
      {reason::kShuttingDown, UNAVAILABLE},
      {reason::kEngineRefused, FAILED_PRECONDITION},
      {reason::kEngineConflict, FAILED_PRECONDITION},
      {reason::kIsolationUnavailable, UNAVAILABLE},
      {reason::kHostNotReady, FAILED_PRECONDITION},
      {reason::kStoreFailed, INTERNAL},
      {reason::kInternal, INTERNAL},
  };
  for (const auto& [reason, code] : rows) {
    const grpc::Status status = to_status(Error(reason, "why"));
    EXPECT_EQ(status.error_code(), code) << reason.name;
    EXPECT_EQ(decode(status).reason(), reason.name);
  }
}

TEST(ToStatus, KeepsALongErrorBelowTheHeaderLimit) {
  Error::Metadata metadata;
  for (int i = 0; i < 100; ++i) metadata["key" + std::to_string(i)] = std::string(5000, 'v');
  for (const std::string& unit : {std::string("a"), std::string("%"), std::string("€"),
                                  std::string("\n"), std::string("\xFF")}) {
    std::string message = "begins so ";
    while (message.size() < 100'000) message += unit;
    const grpc::Status status = to_status(Error(reason::kInternal, message, metadata));
    EXPECT_LT(trailer_bytes(status), 8000U) << unit;
    EXPECT_THAT(status.error_message(), AllOf(StartsWith("begins so "), EndsWith("…")));
    EXPECT_EQ(to_utf8(status.error_message()), status.error_message());
    EXPECT_EQ(decode(status).reason(), "INTERNAL");
  }
}

TEST(ToStatus, KeepsAnOrdinaryLongMessage) {
  const std::string sentence(2000, 'x');
  EXPECT_EQ(to_status(Error(reason::kInternal, sentence)).error_message(), sentence);
}

TEST(ToStatus, ReplacesInvalidUtf8) {
  const grpc::Status status =
      to_status(Error(reason::kInvalidArgument, "bad \xC3", {{"name", "\xFF"}}));
  EXPECT_EQ(status.error_message(), "bad \xEF\xBF\xBD");
  EXPECT_EQ(decode(status).metadata().at("name"), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace agbox
