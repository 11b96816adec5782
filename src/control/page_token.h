// SPDX-License-Identifier: Apache-2.0
// A position in the list of sandboxes: after one that was returned. It consists of the keys that
// the list is ordered by, so it stays valid while sandboxes are created and removed between two
// pages.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "agbox/v1/sandbox.pb.h"
#include "base/result.h"

namespace agbox {

// A page stays below the 4 MiB that clients accept by default, with space for the envelope.
inline constexpr std::size_t kPageBytes = (std::size_t{4} << 20) - (std::size_t{64} << 10);

// For text that is not a token.
std::unexpected<Error> foreign_page_token();

class PageToken {
 public:
  static PageToken of(const v1::SandboxHandle& handle);
  // Empty: the beginning.
  static Result<PageToken> parse(std::string_view text);

  std::string text() const;
  // Whether the sandbox comes after this position.
  bool precedes(const v1::SandboxHandle& handle) const { return *this < of(handle); }

  auto operator<=>(const PageToken&) const = default;

 private:
  // Newest first: the creation time is negated.
  std::int64_t minus_seconds_ = INT64_MIN;
  std::int32_t minus_nanos_ = INT32_MIN;
  std::string sandbox_id_;
};

}  // namespace agbox
