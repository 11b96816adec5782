// SPDX-License-Identifier: Apache-2.0
// Uses a store from several threads and prints, one line each, what the store has acknowledged;
// test_store_kills.py kills it and compares the next run's first lines with that.
//
//   store_driver PATH RUN [option=value ...]
//
//   changes=N         per thread, then close and exit 0; without it, until killed
//   vfs=forgetful     a kill loses unsynced writes
//   synchronous=...   SQLite's
//   plan=migrate      opens with a schema two versions ahead
//   ballast=BYTES
//   insist=1          nothing is new work, so all changes wait for space on a full disk
//   taken=FILE        IDs, one per line, that must never be reused
//   record=1          prints the passed failpoints at the end
//
// Prints everything that is stored, then "go", then what is acknowledged. Every change to a sandbox
// updates a counter k in five places (two events, operation, status, container), so a partial
// change is detected.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/failpoint.h"
#include "model/reasons.h"
#include "robustness/forgetful_vfs.h"
#include "store/schema.h"
#include "store/store.h"
#include "support/callback_thread.h"

namespace agbox {
namespace {

constexpr int kThreads = 6;

// One write per line: after a kill the reader has complete lines only.
void say(const std::string& line) {
  const std::string text = line + "\n";
  AGBOX_CHECK(::write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
              "write to stdout");
}

struct Settings {
  std::string path;
  std::string run;
  std::map<std::string, std::string> options;
  std::string option(const std::string& name) const {
    const auto found = options.find(name);
    return found == options.end() ? "" : found->second;
  }
};

MigrationPlan future_plan() {
  return {.version = kStoreSchemaVersion + 2,
          .steps = {{.to_version = kStoreSchemaVersion + 1,
                     .sql = "ALTER TABLE sandbox ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'"},
                    {.to_version = kStoreSchemaVersion + 2,
                     .sql = "UPDATE sandbox SET colour = 'blue'"}}};
}

change::AppendEvent event(const std::string& sandbox_id, const std::string& token,
                          std::size_t padding = 0) {
  change::AppendEvent append;
  append.event.set_sandbox_id(sandbox_id);
  append.event.set_event_type(v1::SANDBOX_PREPARING);
  append.event.mutable_occurred_at()->set_seconds(1'700'000'000);
  append.event.mutable_sandbox_phase()->set_phase(token);
  append.event.mutable_sandbox_phase()->set_error_message(std::string(padding, 'x'));
  return append;
}

WallTime counted(int k) {
  return WallTime(std::chrono::nanoseconds(k));
}

class Driver {
 public:
  Driver(Store& store, const Settings& settings, int thread)
      : store_(store),
        changes_(settings.option("changes").empty() ? -1 : std::stoi(settings.option("changes"))),
        new_work_(settings.option("insist") == "1" ? Urgency::GoesOn : Urgency::NewWork),
        name_(settings.run + "-" + std::to_string(thread)),
        random_(std::random_device{}()) {}

  void run() {
    for (int i = 0; changes_ != 0; ++i) live_one("s-" + name_ + "-" + std::to_string(i));
  }

 private:
  bool append(std::vector<Mutation> mutations, Urgency urgency = Urgency::GoesOn,
              const std::string& acknowledgement = "") {
    if (changes_ > 0) --changes_;
    std::promise<bool> done;
    store_.append({std::move(mutations), urgency}, [&](const Result<Committed>& result) {
      if (result) {
        std::string line = acknowledgement;
        for (const StoredEvent& stored : result->events) {
          line += " " + std::to_string(stored.event.sequence());
        }
        say(line);
      } else {
        say("refused " + std::string(result.error().reason().name));
      }
      done.set_value(result.has_value());
    });
    return done.get_future().get();
  }

  // Creates a sandbox, works with it, and sometimes deletes and purges it.
  void live_one(const std::string& id) {
    change::CreateSandbox create;
    create.sandbox_id = id;
    create.created_at = counted(1);
    create.status = {.state = v1::SANDBOX_STATE_PENDING,
                     .changed_at = counted(0),
                     .error_code = {},
                     .error_message = {}};
    create.operation = {.operation = Operation::Creating, .reason = "", .attempts = 0};
    create.spec.set_image(id);
    if (!append({create, event(id, "create")}, new_work_, "created " + id)) return;
    if (append({create}, Urgency::GoesOn, "reused " + id)) return;
    const int rounds = std::uniform_int_distribution(1, 6)(random_);
    for (int k = 1; k <= rounds && changes_ != 0; ++k) {
      count_to(id, k);
      if (k % 2 == 0) run_exec(id, "e-" + id + "-" + std::to_string(k));
    }
    if (std::uniform_int_distribution(0, 2)(random_) != 0 || changes_ == 0) return;
    say("deleting " + id);
    append({event(id, "delete"), change::MarkDeleted{id, counted(2)}}, Urgency::GoesOn,
           "deleted " + id);
    if (std::uniform_int_distribution(0, 1)(random_) != 0 || changes_ == 0) return;
    say("purging " + id);
    append({change::Purge{id}}, Urgency::GoesOn, "purged " + id);
  }

  void count_to(const std::string& id, int k) {
    const std::string count = std::to_string(k);
    const std::size_t padding = k % 3 == 0 ? 30'000 : 0;  // fills the log to cause checkpoints
    store::v1::Container container;
    container.set_start_count(static_cast<std::uint64_t>(k));
    append({event(id, count + ".first", padding),
            change::SetOperation{id,
                                 {.operation = Operation::Creating,
                                  .reason = "",
                                  .attempts = static_cast<std::uint32_t>(k)}},
            change::SetStatus{id, {v1::SANDBOX_STATE_READY, counted(k), "", ""}},
            change::PutContainer{id, "", container}, event(id, count + ".last")},
           Urgency::GoesOn, "counted " + id + " " + count);
  }

  void run_exec(const std::string& id, const std::string& exec_id) {
    change::CreateExec create;
    create.request.set_sandbox_id(id);
    create.request.set_exec_id(exec_id);
    if (!append({create, event(id, "started/" + exec_id)}, new_work_, "started " + exec_id)) {
      return;
    }
    change::UpdateExec update{exec_id, v1::EXEC_STATE_FINISHED, {}};
    update.record.mutable_ended_at()->set_seconds(1);
    append({update, event(id, "ended/" + exec_id)}, Urgency::GoesOn, "ended " + exec_id);
  }

  Store& store_;
  int changes_;  // remaining; negative: endless
  Urgency new_work_;
  std::string name_;
  std::mt19937 random_;
};

template <class T>
T ask(const std::function<void(std::function<void(Result<T>)>)>& question) {
  std::promise<T> answer;
  question([&](Result<T> result) {
    if (!result) die("read: " + result.error().message());
    answer.set_value(std::move(*result));
  });
  return answer.get_future().get();
}

void say_events(Store& store, const std::string& id, std::uint64_t newest) {
  std::uint64_t after = 0;
  while (after < newest) {
    const auto page = ask<EventPage>(
        [&](auto done) { store.read_events(id, after, 50, 100'000, std::move(done)); });
    AGBOX_CHECK(!page.events.empty(), "an empty page before the newest event");
    for (const StoredEvent& stored : page.events) {
      after = stored.event.sequence();
      say("event " + id + " " + std::to_string(after) + " " + stored.event.sandbox_phase().phase() +
          " " + stored.event.event_id());
    }
  }
}

// In the order of all sandboxes.
void say_order(Store& store, std::uint64_t newest) {
  for (std::uint64_t after = 0; after < newest;) {
    const auto page = ask<AllEventsPage>(
        [&](auto done) { store.read_all_events(after, newest, 50, 100'000, std::move(done)); });
    AGBOX_CHECK(page.unreadable.empty() && page.last > after, "a page of all events goes on");
    for (const StoredEvent& stored : page.events) {
      say("ordered " + std::to_string(stored.position) + " " + stored.event.event_id());
    }
    after = page.last;
  }
  say("newest " + std::to_string(newest));
}

void say_what_is_stored(Store& store) {
  const auto loaded = store.load();
  if (!loaded) die(loaded.error().message());
  say("instance " + store.instance_id());
  for (const BrokenSandbox& broken : loaded->broken) {
    say("broken " + broken.sandbox_id + " " + broken.why);
  }
  for (const SandboxRecord& sandbox : loaded->sandboxes) {
    const auto container = sandbox.containers.find("");
    const std::uint64_t starts =
        container == sandbox.containers.end() ? 0 : container->second.start_count();
    say("sandbox " + sandbox.sandbox_id + " " + std::to_string(sandbox.operation.attempts) + " " +
        std::to_string(sandbox.status.changed_at.time_since_epoch().count()) + " " +
        std::to_string(starts) + " " + (sandbox.deleted_at ? "deleted" : "alive") + " " +
        sandbox.spec.image());
    say_events(store, sandbox.sandbox_id, sandbox.newest_sequence);
    const auto page = ask<ExecPage>([&](auto done) {
      store.read_execs(sandbox.sandbox_id, 0, SIZE_MAX, SIZE_MAX, std::move(done));
    });
    for (const ExecRecord& exec : page.execs) {
      say("exec " + sandbox.sandbox_id + " " + exec.request.exec_id() + " " +
          (exec.state == v1::EXEC_STATE_FINISHED ? "ended" : "running"));
    }
  }
  say_order(store, loaded->newest_position);
}

// An ID that was ever used must not be reused.
void try_taken_ids(Store& store, const std::string& file) {
  std::ifstream ids(file);
  std::string id;
  while (ids >> id) {
    change::CreateSandbox create;
    create.sandbox_id = id;
    std::promise<void> done;
    store.append({{create}}, [&](const Result<Committed>& result) {
      if (result || result.error().reason() != reason::kSandboxIdAlreadyExists) say("reused " + id);
      done.set_value();
    });
    done.get_future().get();
  }
}

int drive(const Settings& settings) {
  if (settings.option("record") == "1") failpoint::record_passages(true);
  if (settings.option("vfs") == kForgetfulVfs) register_forgetful_vfs();
  const SystemClock clock;
  CallbackThread callbacks;
  StoreOptions options{.path = settings.path,
                       .post = [&](std::function<void()> f) { callbacks.post(std::move(f)); },
                       .clock = clock,
                       .ballast_bytes = 64 << 10};
  if (!settings.option("ballast").empty())
    options.ballast_bytes = std::stoull(settings.option("ballast"));
  options.testing.vfs = settings.option("vfs");
  if (!settings.option("synchronous").empty())
    options.testing.synchronous = settings.option("synchronous");
  if (settings.option("plan") == "migrate") options.testing.migrations = future_plan();
  auto opened = Store::open(std::move(options));
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message().c_str());
    return 1;
  }
  std::unique_ptr<Store> store = std::move(*opened);
  say_what_is_stored(*store);
  try_taken_ids(*store, settings.option("taken"));
  say("go");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Driver(*store, settings, i).run(); });
  }
  for (std::thread& thread : threads) thread.join();
  store.reset();
  for (const std::string& name : failpoint::recorded_passages()) say("passed " + name);
  return 0;
}

}  // namespace
}  // namespace agbox

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: store_driver PATH RUN [option=value ...]\n");
    return 2;
  }
  ::alarm(120);  // the test is gone
  agbox::Settings settings{.path = argv[1], .run = argv[2], .options = {}};
  for (int i = 3; i < argc; ++i) {
    const std::string option = argv[i];
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) return 2;
    settings.options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return agbox::drive(settings);
}
