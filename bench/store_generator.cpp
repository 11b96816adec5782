// SPDX-License-Identifier: Apache-2.0
// Makes a store with many sandboxes and a long history, to measure how fast a daemon starts on it;
// with `measure`, opens and loads it instead, in rounds.
//
//   store_generator make PATH SANDBOXES EVENTS
//   store_generator measure PATH ROUNDS
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>

#include "store/store.h"

namespace agbox {
namespace {

StoreOptions options(const std::string& path, const Clock& clock) {
  return {.path = path, .post = [](auto function) { function(); }, .clock = clock};
}

change::CreateSandbox create(const std::string& id, WallTime now) {
  change::CreateSandbox create;
  create.sandbox_id = id;
  create.created_at = now;
  create.status = {
      .state = v1::SANDBOX_STATE_STOPPED, .changed_at = now, .error_code = {}, .error_message = {}};
  create.spec.set_image("registry.example/agents/python:3.12");
  for (int i = 0; i < 8; ++i) {
    (*create.spec.mutable_envs())["VARIABLE_" + std::to_string(i)] = "some value of usual length";
  }
  create.created_with.set_state_root("/home/somebody/.local/share/agents-sandbox/state");
  create.created_with.set_exec_output_root("/home/somebody/.local/share/agents-sandbox/exec-logs");
  create.created_with.set_engine_id("ABCD:EFGH:IJKL:MNOP:QRST:UVWX:YZ23:4567");
  return create;
}

change::AppendEvent exec_event(const std::string& id, int number, WallTime now) {
  change::AppendEvent append;
  append.event.set_sandbox_id(id);
  append.event.set_event_type(number % 2 == 0 ? v1::EXEC_STARTED : v1::EXEC_FINISHED);
  append.event.set_sandbox_state(v1::SANDBOX_STATE_READY);
  append.event.mutable_occurred_at()->set_seconds(now.time_since_epoch() / std::chrono::seconds(1));
  append.event.mutable_exec()->set_exec_id("exec-of-" + id + "-" + std::to_string(number / 2));
  append.event.mutable_exec()->set_exec_state(v1::EXEC_STATE_RUNNING);
  return append;
}

int make(const std::string& path, int sandboxes, int events) {
  const SystemClock clock;
  auto store = Store::open(options(path, clock));
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message().c_str());
    return 1;
  }
  std::atomic<int> refused = 0;
  const auto answer = [&](const Result<Committed>& result) { refused += result ? 0 : 1; };
  const WallTime now = clock.wall_now();
  const auto id = [](int number) { return "generated-sandbox-" + std::to_string(number); };
  for (int s = 0; s < sandboxes; ++s) {
    store::v1::Container container;
    container.set_container_id(std::string(64, 'c'));
    (*store)->append(Change{{create(id(s), now), change::PutContainer{id(s), "", container},
                             change::SetSubnet{id(s), "10." + std::to_string(s / 4096) + "." +
                                                          std::to_string(s / 16 % 256) + "." +
                                                          std::to_string(s % 16 * 16) + "/28"}}},
                     answer);
  }
  // As in life: the histories grow side by side.
  for (int e = 0; e < events; ++e) {
    (*store)->append(Change{{exec_event(id(e % sandboxes), e / sandboxes, now)}}, answer);
  }
  store->reset();
  return refused == 0 ? 0 : 1;
}

int measure(const std::string& path, int rounds) {
  const SystemClock clock;
  std::printf("{\"benchmark\": \"store_load\", \"rounds\": [");
  for (int round = 0; round < rounds; ++round) {
    const BootTime start = clock.boot_now();
    auto store = Store::open(options(path, clock));
    if (!store) {
      std::fprintf(stderr, "%s\n", store.error().message().c_str());
      return 1;
    }
    const BootTime opened = clock.boot_now();
    const auto loaded = (*store)->load();
    if (!loaded || loaded->sandboxes.empty() || !loaded->broken.empty()) return 1;
    const BootTime end = clock.boot_now();
    const auto milliseconds = [](BootTime time) { return static_cast<double>(time.count()) / 1e6; };
    std::printf("%s{\"store\": {\"open_ms\": %.3f, \"load_ms\": %.3f, \"sandboxes\": %zu}}",
                round == 0 ? "" : ", ", milliseconds(opened - start), milliseconds(end - opened),
                loaded->sandboxes.size());
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace
}  // namespace agbox

int main(int argc, char** argv) {
  if (argc == 5 && std::strcmp(argv[1], "make") == 0) {
    return agbox::make(argv[2], std::max(1, std::atoi(argv[3])), std::atoi(argv[4]));
  }
  if (argc == 4 && std::strcmp(argv[1], "measure") == 0) {
    return agbox::measure(argv[2], std::atoi(argv[3]));
  }
  std::fprintf(stderr, "usage: store_generator make PATH SANDBOXES EVENTS | measure PATH ROUNDS\n");
  return 2;
}
