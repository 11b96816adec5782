// SPDX-License-Identifier: Apache-2.0
// Bytes from inside a sandbox as the daemon reads them: frames, messages, and every text of a
// message that is shown to people. In odd-sized pieces, because a socket gives what it likes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agbox/guest/v1/link.pb.h"
#include "guestlink/guest_report.h"
#include "guestwire/frame.h"

namespace {

void read(const agbox::guest::v1::ToDaemon& message) {
  using namespace agbox::guestlink;
  if (message.has_prepared()) {
    GuestHello hello;
    fill(hello, message.prepared());
    for (const std::string& note : hello.notes) {
      if (note.size() > 1024) std::abort();
    }
  }
  const auto& failed =
      message.has_hello() ? message.hello().failure() : message.entrypoint_failed();
  if (const auto failure = to_failure(failed)) {
    // Whatever was written inside, people and protobuf strings get valid UTF-8.
    const std::string sentence = failure->sentence();
    if (readable(sentence, sentence.size()) != sentence) std::abort();
    if (failure->code < 0 || failure->code > 255) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // libFuzzer speaks bytes, ours are chars.
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  agbox::guestwire::FrameReader reader(agbox::guestwire::kMaxUnprovenFrame);
  std::size_t piece = 1;
  while (!bytes.empty() && !reader.broken()) {
    const std::size_t length = std::min(piece, bytes.size());
    reader.feed(bytes.substr(0, length));
    bytes.remove_prefix(length);
    piece = piece * 2 + 1;
    while (const auto frame = reader.next()) {
      if (frame->empty() || frame->size() > agbox::guestwire::kMaxUnprovenFrame) std::abort();
      agbox::guest::v1::ToDaemon message;
      if (message.ParseFromString(*frame)) read(message);
    }
  }
  return 0;
}
