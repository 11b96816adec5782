// SPDX-License-Identifier: Apache-2.0
// CreateSandbox with any content: it becomes a spec that can be stored, read again and would be
// accepted again as it is, or is refused in one short sentence.
#include <cstddef>
#include <cstdint>

#include "agbox/v1/service.pb.h"
#include "base/check.h"
#include "base/utf8.h"
#include "model/spec/maxima.h"
#include "model/spec/sandbox_spec.h"

namespace {

using namespace agbox;

void check_refused(const Error& error) {
  AGBOX_CHECK(error.reason() == reason::kInvalidArgument ||
                  error.reason() == reason::kResourceExhausted ||
                  error.reason() == reason::kUnimplemented,
              "the error is one of the request");
  AGBOX_CHECK(!error.message().empty() && error.message().size() < 8192, "the sentence is short");
  AGBOX_CHECK(to_utf8(error.message()) == error.message(), "the sentence is UTF-8");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  v1::CreateSandboxRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;  // as gRPC does
  const auto spec = parse_create_request(request);
  if (!spec) {
    check_refused(spec.error());
    return 0;
  }
  AGBOX_CHECK(spec->create_spec.ByteSizeLong() <= maxima::kSpecBytes, "the spec is bounded");
  v1::CreateSpec stored;
  AGBOX_CHECK(stored.ParseFromString(spec->create_spec.SerializeAsString()), "it can be stored");
  AGBOX_CHECK(read_stored_spec(stored).has_value(), "it can be read again");
  const auto again = parse_create_spec(stored);
  AGBOX_CHECK(again.has_value(), "it would be accepted again");
  AGBOX_CHECK(again->create_spec.ByteSizeLong() == spec->create_spec.ByteSizeLong(),
              "and is clean already");
  return 0;
}
