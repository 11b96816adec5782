// SPDX-License-Identifier: Apache-2.0
// What a sandbox's operations work on and report.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "guestlink/guest_error.h"
#include "model/sandbox/work.h"
#include "model/spec/sandbox_spec.h"
#include "store/records.h"

namespace agbox {

// Everything that is known of a sandbox's objects. It is stored together with how the operation
// ended: one that is interrupted starts over, and finds what it made by its labels.
struct SandboxFacts {
  std::string sandbox_id;
  SandboxSpec spec;
  store::v1::CreatedWith created_with;
  std::optional<std::string> subnet;
  std::map<std::string, store::v1::Container> containers;  // by name; the primary's is empty
  // Of the primary's next start. On disk before the operation begins, because nobody could take in
  // a guest again whose secret was lost.
  std::string next_secret{};

  // The engine's; empty where none is known.
  std::string primary_id() const {
    const auto primary = containers.find("");
    return primary == containers.end() ? std::string() : primary->second.container_id();
  }
  // What holds the folder of its guest; empty where nothing is known of how it was made.
  std::filesystem::path link_root() const {
    if (!created_with.link_root().empty()) return created_with.link_root();
    if (created_with.state_root().empty()) return {};
    return std::filesystem::path(created_with.state_root()) / "links";
  }
};

// Why an attempt did not get done. Nobody outside of the daemon sees it: an event reports the
// sentence, and which operation failed.
class [[nodiscard]] OperationFailure {
 public:
  OperationFailure(OperationEnd end, std::string message)
      : end_(end), message_(std::move(message)) {}
  // Implicit, because operations are made of what reports these.
  OperationFailure(const Error& error);                  // NOLINT(google-explicit-constructor)
  OperationFailure(const guestlink::GuestError& error);  // NOLINT(google-explicit-constructor)

  OperationEnd end() const { return end_; }
  const std::string& message() const { return message_; }

 private:
  OperationEnd end_;
  std::string message_;
};

template <class T = void>
using OperationResult = std::expected<T, OperationFailure>;

inline std::unexpected<OperationFailure> refuse(std::string message) {
  return std::unexpected(OperationFailure(OperationEnd::Refused, std::move(message)));
}

// What is not definite is tried again.
inline bool is_definite(const OperationFailure& failure) {
  return failure.end() == OperationEnd::Refused || failure.end() == OperationEnd::Lost;
}

inline OperationEnd end_of(const OperationResult<>& result) {
  return result ? OperationEnd::Done : result.error().end();
}

}  // namespace agbox
