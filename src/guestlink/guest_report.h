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
#include "model/network/network_probe.h"

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
  std::vector<std::string> execs;  // that it was given and not told to forget, ended ones included
};

// How an exec ended, as its guest tells it: a hostile one may tell anything of its own execs.
struct ExecEnd {
  enum class How { Exited, Signaled, NotStarted, Cancelled, RunnerLost };
  std::string exec_id;
  How how = How::Exited;
  int code = 0;  // Exited: 0 to 255, Signaled: the signal's number, NotStarted: 126 or 127, else 0
  std::string detail;  // one sentence, where how and code do not say enough
  bool output_truncated = false;
  std::uint64_t user_cpu_microseconds = 0;
  std::uint64_t system_cpu_microseconds = 0;
  std::uint64_t peak_memory_bytes = 0;

  bool operator==(const ExecEnd&) const = default;
};

std::optional<GuestPhase> to_phase(guest::v1::Phase phase);
// Nothing where the guest names no cause that we know.
std::optional<EntrypointFailure> to_failure(const guest::v1::EntrypointFailed& failed);
void fill(GuestHello& hello, const guest::v1::Prepared& prepared);
// Nothing where the guest does not say how.
std::optional<ExecEnd> to_exec_end(const guest::v1::ExecEnded& ended);
// Nothing where the guest names no outcome that we know.
std::optional<ProbeReport> to_probe_report(const guest::v1::ConnectionTried& tried);

}  // namespace agbox::guestlink
