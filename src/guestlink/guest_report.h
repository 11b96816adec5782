// SPDX-License-Identifier: Apache-2.0
// What guests tell, in words of our own: every text bounded and readable, because whatever runs in
// a sandbox may have written it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guestlink/peer.h"

namespace agbox::guestlink {

// The bytes as valid UTF-8 without control characters other than newline and tab, cut in front to
// the last `limit` bytes.
std::string readable(std::string_view bytes, std::size_t limit);

struct EntrypointFailure {
  enum class Cause { Exited, Signaled, TookTooLong, NotStarted, UserCannotRun };
  Cause cause = Cause::Exited;
  int code = 0;             // exit code, or the signal's number
  std::string detail;       // one sentence, where cause and code do not say enough
  std::string output_tail;  // the last that it wrote

  // For people: what happened, the last of the output, and the remedy.
  std::string sentence() const;
  bool operator==(const EntrypointFailure&) const = default;
};

// How it went; no failure where the entrypoint was passed.
struct EntrypointOutcome {
  std::optional<EntrypointFailure> failure;
};

enum class GuestPhase { Fresh, Prepared, Entrypoint, Passed, Failed };

struct MountSeen {
  std::string target;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string failure;  // why the guest could not look at it
};

struct GuestHello {
  std::uint32_t protocol = 0;
  std::string build_id;  // in hex
  GuestPhase phase = GuestPhase::Fresh;
  PeerProcess process;
  std::string failure;  // not empty: the guest cannot prepare its container, and takes no go
  std::vector<std::string> notes;
  std::vector<MountSeen> mounts;
};

std::optional<GuestPhase> to_phase(guest::v1::Phase phase);
// Nothing where the guest names no cause that we know.
std::optional<EntrypointFailure> to_failure(const guest::v1::EntrypointFailed& failed);
void fill(GuestHello& hello, const guest::v1::Prepared& prepared);
std::string to_hex(std::string_view bytes);

}  // namespace agbox::guestlink
