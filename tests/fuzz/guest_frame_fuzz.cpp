// SPDX-License-Identifier: Apache-2.0
// Bytes from inside a sandbox as the daemon reads them: frames, messages, and every text of a
// message that is shown to people. In odd-sized pieces, because a socket gives what it likes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agbox/guest/v1/link.pb.h"
#include "guestlink/guest_report.h"
#include "guestlink/known_execs.h"
#include "guestwire/frame.h"

namespace {

void read(const agbox::guest::v1::ToDaemon& message) {
  using namespace agbox::guestlink;
  if (message.has_prepared()) {
    agbox::GuestHello hello;
    fill(hello, message.prepared());
    for (const std::string& note : hello.notes) {
      if (note.size() > 1024) std::abort();
    }
  }
  const auto& failed =
      message.has_hello() ? message.hello().failure() : message.entrypoint_failed();
  if (const auto failure = to_failure(failed)) {
    // Whatever the guest sent, messages and protobuf strings must be valid UTF-8.
    const std::string sentence = failure->sentence();
    if (readable(sentence, sentence.size()) != sentence) std::abort();
    if (failure->code < 0 || failure->code > 255) std::abort();
  }
  if (const auto end = to_exec_end(message.exec_ended())) {
    if (readable(end->detail, 1024) != end->detail) std::abort();
    if (end->code < 0 || end->code > 255) std::abort();
    // In nanoseconds, which is what clocks and protobuf's durations count in.
    if (end->user_cpu_microseconds > INT64_MAX / 1000) std::abort();
    if (end->system_cpu_microseconds > INT64_MAX / 1000) std::abort();
  }
}

// What a guest says about execs, in the order it says it: of those that it named when it came every
// one can end once, and be cut once before.
class ExecTalk {
 public:
  void hear(const agbox::guest::v1::ToDaemon& message) {
    for (const std::string& id : message.execs_known().exec_ids()) {
      if (known_.add(id)) ++named_;
    }
    if (message.has_exec_truncated()) count(known_.truncated(message.exec_truncated().exec_id()));
    if (message.has_exec_ended()) {
      const std::string& id = message.exec_ended().exec_id();
      count(known_.ended(id));
      if (known_.contains(id)) {
        if (known_.ended(id) != Verdict::Violation || known_.truncated(id) != Verdict::Violation)
          std::abort();
        if (heard_ % 2 == 0 && !known_.forget(id)) std::abort();
      }
    }
    if (heard_ > 2 * named_) std::abort();
  }

 private:
  using Verdict = agbox::guestlink::KnownExecs::Verdict;
  void count(Verdict verdict) { heard_ += verdict == Verdict::Violation ? 0 : 1; }

  agbox::guestlink::KnownExecs known_;
  std::size_t named_ = 0;
  std::size_t heard_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // libFuzzer speaks bytes, ours are chars.
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  agbox::guestwire::FrameReader reader(agbox::guestwire::kMaxUnprovenFrame);
  ExecTalk execs;
  std::size_t piece = 1;
  while (!bytes.empty() && !reader.broken()) {
    const std::size_t length = std::min(piece, bytes.size());
    reader.feed(bytes.substr(0, length));
    bytes.remove_prefix(length);
    piece = piece * 2 + 1;
    while (const auto frame = reader.next()) {
      if (frame->empty() || frame->size() > agbox::guestwire::kMaxUnprovenFrame) std::abort();
      agbox::guest::v1::ToDaemon message;
      if (!message.ParseFromString(*frame)) continue;
      read(message);
      execs.hear(message);
    }
  }
  return 0;
}
