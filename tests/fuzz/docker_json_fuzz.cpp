// SPDX-License-Identifier: Apache-2.0
// Whatever an engine, a registry's helper or the Docker configuration says: errors are fine,
// crashes are not. The first byte chooses who reads the rest.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/rfc3339.h"
#include "engine/docker/api/engine_identity.h"
#include "engine/docker/api/json_reader.h"
#include "engine/docker/api/line_splitter.h"
#include "engine/docker/api/log_frames.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/api/refusal.h"
#include "engine/docker/images/pull_progress.h"
#include "engine/docker/images/registry_auth.h"
#include "model/spec/image_reference.h"

using namespace agbox;

namespace {

void read_pull(std::string_view text) {
  LineSplitter lines(4096);
  PullTracker tracker;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, 7);
    text.remove_prefix(piece.size());
    const auto whole = lines.feed(piece);
    if (!whole) return;
    for (const std::string& line : *whole) {
      if (!tracker.take(line)) return;
      (void)tracker.progress();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // libFuzzer gives bytes, the readers take characters: the same thing.
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 14) {
    case 0:
      (void)read_container(text);
      (void)read_usage(text);
      break;
    case 1:
      (void)read_container_list(text);
      break;
    case 2:
      (void)read_network(text);
      break;
    case 3:
      (void)read_network_list(text);
      break;
    case 4:
      (void)read_image(text);
      break;
    case 5:
      (void)read_created_id(text);
      break;
    case 6:
      (void)read_event(text);
      break;
    case 7:
      if (const auto version = read_engine_version(text)) (void)negotiate(*version);
      break;
    case 8:
      if (const auto engine = read_engine_identity(text, EngineVersion{}, kOldestApi)) {
        (void)judge(*engine);
      }
      break;
    case 9:
      (void)refusal(EngineCall::NetworkCreate, "n", 403, text);
      break;
    case 10:
      read_pull(text);
      break;
    case 11:
      (void)parse_rfc3339(text);
      (void)LogFrames().feed(text);
      break;
    case 12:
      if (const auto source = find_credentials(text, "reg.example"); source && source->stored) {
        (void)registry_auth_header(*source->stored);
      }
      (void)read_helper_answer(text, 0, "reg.example");
      break;
    case 13:
      if (const auto reference = parse_image_reference(text)) {
        // What was parsed must parse again to the same value.
        if (parse_image_reference(reference->canonical()) != *reference) __builtin_trap();
      }
      break;
  }
  return 0;
}
