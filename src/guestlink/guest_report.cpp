// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_report.h"

#include <algorithm>
#include <array>

#include "base/tar/tree_counts.h"
#include "base/utf8.h"

namespace agbox::guestlink {
namespace {

constexpr std::size_t kMaxSentence = 1024;
constexpr std::size_t kMaxTreeFailure =
    8192;  // with a path in it, every byte of which may be escaped
constexpr std::size_t kMaxTail = 4096;
constexpr std::size_t kMaxPath = 4096;  // PATH_MAX
constexpr int kMaxNotes = 32;
constexpr int kMaxMounts = 1024;
// A century: no honest guest reports more, and sums and durations fit into every type.
constexpr std::uint64_t kMaxCpuMicroseconds = 100ULL * 366 * 24 * 3600 * 1'000'000;
constexpr int kMaxSignal = 64;
// Why a copy can fail; anything else is COPY_FAILED.
constexpr auto kCopyReasons =
    std::to_array({reason::kPathNotFound, reason::kPathAccessDenied, reason::kPathConflict,
                   reason::kNoSpace, reason::kCopyTooLarge, reason::kInvalidArgument});

}  // namespace

std::string readable(std::string_view bytes, std::size_t limit) {
  if (bytes.size() > limit) bytes.remove_prefix(bytes.size() - limit);
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    // U+0080 to U+009F: terminals take them as the beginning of an escape sequence.
    const bool is_c1 = length == 2 && first == 0xC2 && static_cast<unsigned char>(bytes[1]) < 0xA0;
    const bool control = is_c1 || (length == 1 && (first < 0x20 || first == 0x7F));
    if (length == 0 || (control && first != '\n' && first != '\t')) {
      text += '?';
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

// What is shown as one line, so that it cannot be taken for several.
std::string sentence(std::string_view bytes, std::size_t limit) {
  std::string text = readable(bytes, limit);
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

std::optional<GuestPhase> to_phase(guest::v1::Phase phase) {
  switch (phase) {
    case guest::v1::PHASE_FRESH:
      return GuestPhase::Fresh;
    case guest::v1::PHASE_PREPARED:
      return GuestPhase::Prepared;
    case guest::v1::PHASE_ENTRYPOINT:
      return GuestPhase::Entrypoint;
    case guest::v1::PHASE_PASSED:
      return GuestPhase::Passed;
    case guest::v1::PHASE_FAILED:
      return GuestPhase::Failed;
    default:
      return std::nullopt;
  }
}

std::optional<EntrypointFailure> to_failure(const guest::v1::EntrypointFailed& failed) {
  using Wire = guest::v1::EntrypointFailed;
  EntrypointFailure failure;
  switch (failed.cause()) {
    case Wire::CAUSE_EXITED:
      failure.cause = EntrypointFailure::Cause::Exited;
      break;
    case Wire::CAUSE_SIGNALED:
      failure.cause = EntrypointFailure::Cause::Signaled;
      break;
    case Wire::CAUSE_TOOK_TOO_LONG:
      failure.cause = EntrypointFailure::Cause::TookTooLong;
      break;
    case Wire::CAUSE_NOT_STARTED:
      failure.cause = EntrypointFailure::Cause::NotStarted;
      break;
    case Wire::CAUSE_USER_CANNOT_RUN:
      failure.cause = EntrypointFailure::Cause::UserCannotRun;
      break;
    default:
      return std::nullopt;
  }
  failure.code = std::clamp(failed.code(), 0, 255);
  failure.detail = sentence(failed.detail(), kMaxSentence);
  failure.output_tail = readable(failed.output_tail(), kMaxTail);
  return failure;
}

std::optional<ExecEnd> to_exec_end(const guest::v1::ExecEnded& ended) {
  using Wire = guest::v1::ExecEnded;
  ExecEnd end;
  switch (ended.how()) {
    case Wire::HOW_EXITED:
      end.how = ExecEnd::How::Exited;
      end.code = std::clamp(ended.code(), 0, 255);
      break;
    case Wire::HOW_SIGNALED:
      end.how = ExecEnd::How::Signaled;
      end.code = std::clamp(ended.code(), 1, kMaxSignal);
      break;
    case Wire::HOW_NOT_STARTED:
      end.how = ExecEnd::How::NotStarted;
      end.code = std::clamp(ended.code(), 126, 127);
      break;
    case Wire::HOW_CANCELLED:
      end.how = ExecEnd::How::Cancelled;
      break;
    case Wire::HOW_RUNNER_LOST:
      end.how = ExecEnd::How::RunnerLost;
      break;
    default:
      return std::nullopt;
  }
  end.exec_id = ended.exec_id();
  end.detail = sentence(ended.detail(), kMaxSentence);
  end.output_truncated = ended.output_truncated();
  end.user_cpu_microseconds =
      std::min<std::uint64_t>(ended.user_cpu_microseconds(), kMaxCpuMicroseconds);
  end.system_cpu_microseconds =
      std::min<std::uint64_t>(ended.system_cpu_microseconds(), kMaxCpuMicroseconds);
  end.peak_memory_bytes = ended.peak_memory_bytes();
  return end;
}

TreeReport to_tree_report(const guest::v1::TreeReceived& received) {
  return {.failure = sentence(received.failure(), kMaxTreeFailure),
          .entries = received.entries(),
          .bytes = received.bytes()};
}

std::optional<InputReport> to_input_report(const guest::v1::InputAttached& attached) {
  using Wire = guest::v1::InputAttached;
  InputReport report{.position = attached.position(),
                     .detail = sentence(attached.detail(), kMaxSentence)};
  switch (attached.outcome()) {
    case Wire::OUTCOME_ATTACHED:
      report.outcome = InputReport::Outcome::Attached;
      return report;
    case Wire::OUTCOME_CLOSED:
      report.outcome = InputReport::Outcome::Closed;
      return report;
    case Wire::OUTCOME_FAILED:
      report.outcome = InputReport::Outcome::Failed;
      return report;
    default:
      return std::nullopt;
  }
}

FilesReport to_files_report(const guest::v1::FilesDone& done) {
  FilesReport report{.entries = done.entries(),
                     .bytes = done.bytes(),
                     .notes = done.notes(),
                     .first_note = sentence(done.first_note(), kMaxTreeFailure)};
  if (done.failure().empty()) return report;
  const auto* reason = std::ranges::find(kCopyReasons, done.reason(), &Reason::name);
  report.failure.emplace(reason == kCopyReasons.end() ? reason::kCopyFailed : *reason,
                         sentence(done.failure(), kMaxTreeFailure));
  return report;
}

std::optional<ProbeReport> to_probe_report(const guest::v1::ConnectionTried& tried) {
  using Wire = guest::v1::ConnectionTried;
  const std::string detail = sentence(tried.detail(), kMaxSentence);
  switch (tried.outcome()) {
    case Wire::OUTCOME_REFUSED:
      return ProbeReport{.outcome = ProbeReport::Outcome::Refused, .detail = detail};
    case Wire::OUTCOME_CONNECTED:
      return ProbeReport{.outcome = ProbeReport::Outcome::Connected, .detail = detail};
    case Wire::OUTCOME_UNKNOWN:
      return ProbeReport{.outcome = ProbeReport::Outcome::Unknown, .detail = detail};
    default:
      return std::nullopt;
  }
}

void fill(GuestHello& hello, const guest::v1::Prepared& prepared) {
  hello.failure = sentence(prepared.failure(), kMaxSentence);
  for (int i = 0; i < std::min(prepared.notes_size(), kMaxNotes); ++i) {
    hello.notes.push_back(sentence(prepared.notes(i), kMaxSentence));
  }
  for (int i = 0; i < std::min(prepared.mounts_size(), kMaxMounts); ++i) {
    const guest::v1::MountSeen& seen = prepared.mounts(i);
    hello.mounts.push_back({sentence(seen.target(), kMaxPath), seen.device(), seen.inode(),
                            sentence(seen.failure(), kMaxSentence)});
  }
}

}  // namespace agbox::guestlink
