// SPDX-License-Identifier: Apache-2.0
// Durable appends, one alone and from 32 writers: our store beside the plain way, a loop that makes
// one SQLite transaction per event with the same durability. Each round does all arms once, in
// random order, on the same disk.
//
//   store_bench [ROUNDS [FOLDER]]
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "support/callback_thread.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

constexpr int kWriters = 32;
constexpr int kAppendsAlone = 1000;
constexpr int kAppendsPerWriter = 400;

using Latencies = std::vector<double>;  // microseconds
using Metrics = std::map<std::string, double>;

double microseconds(BootTime time) {
  return static_cast<double>(time.count()) / 1e3;
}

std::string sandbox_name(int writer) {
  return "bench-sandbox-" + std::to_string(writer);
}

change::AppendEvent event(int writer) {
  change::AppendEvent append;
  append.event.set_sandbox_id(sandbox_name(writer));
  append.event.set_event_type(v1::EXEC_STARTED);
  append.event.set_sandbox_state(v1::SANDBOX_STATE_READY);
  append.event.mutable_occurred_at()->set_seconds(1'700'000'000);
  append.event.mutable_exec()->set_exec_id("0f8fad5b-d9cb-469f-a165-70867728950e");
  append.event.mutable_exec()->set_exec_state(v1::EXEC_STATE_RUNNING);
  return append;
}

// Something that makes one event durable and returns when it is.
using AppendDurably = std::function<void(int writer)>;

Metrics measure(int writers, int appends_each, const AppendDurably& append) {
  const SystemClock clock;
  std::vector<Latencies> latencies(static_cast<std::size_t>(writers));
  const BootTime start = clock.boot_now();
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < appends_each; ++i) {
        const BootTime before = clock.boot_now();
        append(writer);
        latencies[static_cast<std::size_t>(writer)].push_back(
            microseconds(clock.boot_now() - before));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = microseconds(clock.boot_now() - start) / 1e6;
  Latencies all;
  for (const Latencies& some : latencies) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all);
  const auto percentile = [&](double part) {
    return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  };
  return {{"appends_per_second", static_cast<double>(all.size()) / seconds},
          {"p50_us", percentile(0.50)},
          {"p99_us", percentile(0.99)}};
}

// What one writer waits on for its own change.
class Answer {
 public:
  void give() {
    const std::scoped_lock lock(mutex_);
    is_there_ = true;
    given_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [&] { return is_there_; });
    is_there_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  bool is_there_ = false;
};

class StoreArm {
 public:
  explicit StoreArm(const fs::path& directory) {
    auto opened = Store::open({.path = directory / "ids.db",
                               .post = [this](auto f) { callbacks_.post(std::move(f)); },
                               .clock = clock_});
    AGBOX_CHECK(opened.has_value(), "open the store");
    store_ = std::move(*opened);
    for (int writer = 0; writer < kWriters; ++writer) {
      change::CreateSandbox create;
      create.sandbox_id = sandbox_name(writer);
      append(writer, {{create}});
    }
  }
  void append(int writer) { append(writer, {{event(writer)}}); }

 private:
  void append(int writer, Change change) {
    Answer& answer = answers_[static_cast<std::size_t>(writer)];
    store_->append(std::move(change), [&](const Result<Committed>& result) {
      AGBOX_CHECK(result.has_value(), "append");
      answer.give();
    });
    answer.wait();
  }

  SystemClock clock_;
  CallbackThread callbacks_;
  std::vector<Answer> answers_ = std::vector<Answer>(kWriters);
  std::unique_ptr<Store> store_;
};

// The plain way: a mutex around one connection, one transaction per event.
class PlainArm {
 public:
  explicit PlainArm(const fs::path& directory)
      : connection_(open(directory / "plain.db")),
        insert_(prepared("INSERT INTO event VALUES (?, ?, ?)")),
        begin_(prepared("BEGIN IMMEDIATE")),
        commit_(prepared("COMMIT")) {}

  void append(int writer) {
    const v1::SandboxEvent one = event(writer).event;
    const std::scoped_lock lock(mutex_);
    const std::string bytes = one.SerializeAsString();
    AGBOX_CHECK(begin_.run().has_value(), "begin");
    AGBOX_CHECK(insert_.run(std::int64_t{writer}, ++sequence_, sqlite::Blob{bytes}).has_value(),
                "insert");
    AGBOX_CHECK(commit_.run().has_value(), "commit");
  }

 private:
  static sqlite::Connection open(const fs::path& path) {
    auto connection = sqlite::Connection::open(path, sqlite::Access::Create, "");
    AGBOX_CHECK(connection.has_value(), "open the plain database");
    AGBOX_CHECK(connection
                    ->execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                              "CREATE TABLE event (sandbox INTEGER, sequence INTEGER, body BLOB,"
                              " PRIMARY KEY (sandbox, sequence)) WITHOUT ROWID")
                    .has_value(),
                "make the plain table");
    return std::move(*connection);
  }
  sqlite::Statement prepared(std::string_view sql) {
    auto statement = connection_.prepare(sql);
    AGBOX_CHECK(statement.has_value(), "prepare");
    return std::move(*statement);
  }

  std::mutex mutex_;
  sqlite::Connection connection_;
  sqlite::Statement insert_, begin_, commit_;
  std::int64_t sequence_ = 0;
};

int bench(int rounds, const fs::path& directory) {
  StoreArm store(directory);
  PlainArm plain(directory);
  using Arm = std::pair<std::string, std::function<Metrics()>>;
  std::vector<Arm> arms = {
      {"store alone", [&] { return measure(1, kAppendsAlone, [&](int w) { store.append(w); }); }},
      {"plain alone", [&] { return measure(1, kAppendsAlone, [&](int w) { plain.append(w); }); }},
      {"store 32 writers",
       [&] { return measure(kWriters, kAppendsPerWriter, [&](int w) { store.append(w); }); }},
      {"plain 32 writers",
       [&] { return measure(kWriters, kAppendsPerWriter / 10, [&](int w) { plain.append(w); }); }},
  };
  std::mt19937 random(std::random_device{}());
  std::printf("{\"benchmark\": \"store\", \"rounds\": [");
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(arms, random);
    std::printf("%s\n  {", round == 0 ? "" : ",");
    for (std::size_t i = 0; i < arms.size(); ++i) {
      const Metrics metrics = arms[i].second();
      std::printf("%s\"%s\": {", i == 0 ? "" : ", ", arms[i].first.c_str());
      for (auto metric = metrics.begin(); metric != metrics.end(); ++metric) {
        std::printf("%s\"%s\": %.1f", metric == metrics.begin() ? "" : ", ", metric->first.c_str(),
                    metric->second);
      }
      std::printf("}");
    }
    std::printf("}");
    std::fflush(stdout);
  }
  std::printf("\n]}\n");
  return 0;
}

}  // namespace
}  // namespace agbox

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  // On the disk where stores live, not on a tmpfs, where a sync costs nothing.
  const std::filesystem::path parent = argc > 2 ? argv[2] : "/var/tmp";
  std::string pattern = parent / "agbox-store-bench-XXXXXX";
  if (rounds < 1 || ::mkdtemp(pattern.data()) == nullptr) {
    std::fprintf(stderr, "usage: store_bench [ROUNDS [FOLDER]]\n");
    return 2;
  }
  const int code = agbox::bench(rounds, pattern);
  std::filesystem::remove_all(pattern);
  return code;
}
