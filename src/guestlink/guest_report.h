// SPDX-License-Identifier: Apache-2.0
// Converts the reports of guests: every text is bounded and made readable, because untrusted code
// in the sandbox may have written it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "agbox/guest/v1/link.pb.h"
#include "model/guest/entrypoint_outcome.h"
#include "model/guest/exec_end.h"
#include "model/guest/file_order.h"
#include "model/guest/guest_hello.h"
#include "model/guest/input_report.h"
#include "model/guest/tree_order.h"
#include "model/network/network_probe.h"

namespace agbox::guestlink {

// The last `limit` bytes as valid UTF-8 without control characters other than newline and tab.
std::string readable(std::string_view bytes, std::size_t limit);

std::optional<GuestPhase> to_phase(guest::v1::Phase phase);
// nullopt if the guest reports no cause that we know.
std::optional<EntrypointFailure> to_failure(const guest::v1::EntrypointFailed& failed);
void fill(GuestHello& hello, const guest::v1::Prepared& prepared);
// nullopt if the guest does not report how it ended.
std::optional<ExecEnd> to_exec_end(const guest::v1::ExecEnded& ended);
TreeReport to_tree_report(const guest::v1::TreeReceived& received);
FilesReport to_files_report(const guest::v1::FilesDone& done);
// nullopt if the guest reports no outcome that we know.
std::optional<InputReport> to_input_report(const guest::v1::InputAttached& attached);
std::optional<ProbeReport> to_probe_report(const guest::v1::ConnectionTried& tried);

}  // namespace agbox::guestlink
