// SPDX-License-Identifier: Apache-2.0
// Creates tests/data/store/schema-<n>.db: a small store of the current schema, with one object of
// each kind. Run once for a new schema, and commit the file as the old store for later versions.
//
//   store_sample tests/data/store/schema-3.db
#include <cstdio>
#include <filesystem>
#include <future>
#include <mutex>

#include "store/sqlite.h"
#include "store/store.h"

namespace agbox {
namespace {

WallTime at(int seconds) {
  return WallTime(std::chrono::seconds(1'700'000'000 + seconds));
}

change::CreateSandbox create(const std::string& id) {
  change::CreateSandbox create;
  create.sandbox_id = id;
  create.created_at = at(0);
  create.status.changed_at = at(0);
  create.operation = {.operation = Operation::Creating, .reason = "", .attempts = 1};
  create.spec.set_image("sample:1");
  (*create.spec.mutable_labels())["kind"] = "sample";
  create.created_with.set_state_root("/var/sample/state");
  create.created_with.set_exec_output_root("/var/sample/logs");
  create.created_with.set_engine_id("sample-engine");
  create.created_with.add_dns("192.0.2.53");
  return create;
}

change::AppendEvent event(const std::string& id, v1::EventType type, v1::SandboxState state,
                          int seconds) {
  change::AppendEvent append;
  append.event.set_sandbox_id(id);
  append.event.set_event_type(type);
  append.event.set_sandbox_state(state);
  append.event.mutable_occurred_at()->set_seconds(1'700'000'000 + seconds);
  return append;
}

Change life_of_a_ready_sandbox() {
  const std::string id = "sample-ready";
  store::v1::Container container;
  container.set_container_id("0123456789abcdef");
  container.set_start_count(1);
  container.set_secret("sixteen secret b");
  change::CreateExec ended;
  ended.request.set_sandbox_id(id);
  ended.request.set_exec_id("sample-exec-ended");
  ended.request.add_command("true");
  change::CreateExec running = ended;
  running.request.set_exec_id("sample-exec-running");
  change::UpdateExec end{"sample-exec-ended", v1::EXEC_STATE_FINISHED, {}};
  end.record.mutable_ended_at()->set_seconds(1'700'000'004);
  return Change{{create(id), event(id, v1::SANDBOX_ACCEPTED, v1::SANDBOX_STATE_PENDING, 0),
                 change::SetSubnet{id, "10.201.0.0/28"}, change::PutContainer{id, "", container},
                 event(id, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY, 2),
                 change::SetStatus{id, {v1::SANDBOX_STATE_READY, at(2), "", ""}},
                 change::SetOperation{id, {}},
                 change::SetQuietSince{id, {at(4), BootTime(4), "sample-boot"}}, ended,
                 event(id, v1::EXEC_STARTED, v1::SANDBOX_STATE_READY, 3), end,
                 event(id, v1::EXEC_FINISHED, v1::SANDBOX_STATE_READY, 4), running,
                 event(id, v1::EXEC_STARTED, v1::SANDBOX_STATE_READY, 5)}};
}

Change life_of_a_deleted_sandbox(const std::string& id) {
  return Change{{create(id), event(id, v1::SANDBOX_DELETED, v1::SANDBOX_STATE_DELETED, 9),
                 change::SetStatus{id, {v1::SANDBOX_STATE_DELETED, at(9), "", ""}},
                 change::SetOperation{id, {}}, change::MarkDeleted{id, at(9)}}};
}

int make(const std::filesystem::path& path) {
  const SystemClock clock;
  {
    auto store = Store::open({.path = path, .post = [](auto f) { f(); }, .clock = clock});
    if (!store) {
      std::fprintf(stderr, "%s\n", store.error().message().c_str());
      return 1;
    }
    for (Change change :
         {life_of_a_ready_sandbox(), life_of_a_deleted_sandbox("sample-deleted"),
          life_of_a_deleted_sandbox("sample-purged"), Change{{change::Purge{"sample-purged"}}}}) {
      std::promise<bool> done;
      (*store)->append(std::move(change), [&](const Result<Committed>& result) {
        done.set_value(result.has_value());
      });
      if (!done.get_future().get()) return 1;
    }
  }
  std::filesystem::remove(path.string() + ".ballast");
  auto connection = sqlite::Connection::open(path, sqlite::Access::ReadWrite, "");
  const auto named = connection->execute(
      "UPDATE instance SET instance_id = '5a3c1f0e-7d52-4c53-9a51-0d1c8b6f2e77'");
  return named ? 0 : 1;
}

}  // namespace
}  // namespace agbox

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: store_sample NEW-FILE\n");
    return 2;
  }
  return agbox::make(argv[1]);
}
