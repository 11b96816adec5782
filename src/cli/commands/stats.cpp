// SPDX-License-Identifier: Apache-2.0
// agbox stats: shows what the containers of sandboxes use, once or again and again.
#include <algorithm>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/message_json.h"
#include "cli/format/stats_text.h"
#include "cli/format/table.h"
#include "cli/id_lookup.h"
#include "cli/interrupt.h"
#include "model/duration.h"

namespace agbox::cli {

namespace {

struct StatsFlags {
  std::vector<std::string> sandbox_ids;
  bool follow = false;
  std::string interval = "1s";
  CLI::Option* interval_flag = nullptr;
  bool json = false;
};

// Those that the caller names, or all that run.
sdk::Result<std::vector<std::string>> wanted_sandboxes(const sdk::RawClient& client,
                                                       const StatsFlags& flags) {
  std::vector<std::string> ids;
  for (const std::string& given : flags.sandbox_ids) {
    auto found = find_sandbox(client, given);
    if (!found) return std::unexpected(found.error());
    ids.push_back(found->sandbox_id());
  }
  if (!ids.empty()) return ids;
  const auto listed = list_all_sandboxes(client, {});
  if (!listed) return std::unexpected(listed.error());
  for (const v1::SandboxHandle& sandbox : listed->sandboxes()) {
    if (sandbox.state() == v1::SANDBOX_STATE_READY) ids.push_back(sandbox.sandbox_id());
  }
  return ids;
}

int show_once(Console& console, const sdk::RawClient& client, const StatsFlags& flags,
              const std::vector<std::string>& sandbox_ids) {
  StatsTable stats_table;
  Table table(StatsTable::header());
  for (const std::string& id : sandbox_ids) {
    v1::GetStatsRequest request;
    request.set_sandbox_id(id);
    const auto response = client.get_stats(request);
    if (!response) return fail_call(console, "get stats", response.error());
    if (flags.json) console.out(message_json_line(response->stats()));
    for (auto& row : stats_table.rows(response->stats())) table.add(std::move(row));
  }
  if (!flags.json) console.out(table.text());
  return kSuccess;
}

// One thread per sandbox reads, and all print: a block of rows per measurement.
class StatsPrinter {
 public:
  StatsPrinter(Console& console, bool json, std::stop_source& stop)
      : console_(console), json_(json), stop_(stop) {}

  void print(const v1::SandboxStats& stats) {
    const std::lock_guard lock(mutex_);
    if (has_failed_) return;
    if (json_) {
      console_.out(message_json_line(stats));
    } else {
      Table table(StatsTable::header());
      for (auto& row : stats_table_.rows(stats)) table.add(std::move(row));
      console_.out(table.text());
    }
    has_failed_ = !console_.flush();
    if (has_failed_) stop_.request_stop();
  }
  void fail(const sdk::Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    stop_.request_stop();
  }
  bool has_failed() const { return has_failed_; }
  const std::optional<sdk::Error>& error() const { return error_; }

 private:
  Console& console_;
  const bool json_;
  std::stop_source& stop_;
  std::mutex mutex_;
  StatsTable stats_table_;
  bool has_failed_ = false;
  std::optional<sdk::Error> error_;
};

void follow_one(const sdk::RawClient& client, const v1::WatchStatsRequest& request,
                StatsPrinter& printer, const std::stop_token& stop) {
  sdk::StatsStream stream = client.watch_stats(request);
  const std::stop_callback on_stop(stop, [&stream] { stream.cancel(); });
  while (true) {
    const auto response = stream.next();
    if (!response && stop.stop_requested()) return;
    if (!response) return printer.fail(response.error());
    if (!*response) return;  // the sandbox is deleted
    printer.print((*response)->stats());
  }
}

int follow_all(Console& console, const sdk::RawClient& client, const StatsFlags& flags,
               const std::vector<std::string>& sandbox_ids, std::chrono::nanoseconds interval) {
  const Interrupt interrupt;
  std::stop_source stop;
  const std::stop_callback on_signal(interrupt.token(), [&stop] { stop.request_stop(); });
  StatsPrinter printer(console, flags.json, stop);
  {
    std::vector<std::jthread> readers;  // joined at the end of the block
    for (const std::string& id : sandbox_ids) {
      v1::WatchStatsRequest request;
      request.set_sandbox_id(id);
      const auto seconds = std::chrono::floor<std::chrono::seconds>(interval);
      request.mutable_interval()->set_seconds(seconds.count());
      request.mutable_interval()->set_nanos(
          static_cast<std::int32_t>((interval - seconds).count()));
      readers.emplace_back([&client, &printer, request, token = stop.get_token()] {
        follow_one(client, request, printer, token);
      });
    }
  }
  if (printer.has_failed()) return kRuntimeError;
  if (printer.error()) return fail_call(console, "watch stats", *printer.error());
  return interrupt.token().stop_requested() ? interrupt.exit_code() : static_cast<int>(kSuccess);
}

int show_stats(Console& console, const StatsFlags& flags) {
  using namespace std::chrono_literals;
  if (flags.interval_flag->count() > 0 && !flags.follow) {
    return refuse_usage(console, "--interval requires --follow");
  }
  const auto interval = parse_duration(flags.interval);
  if (!interval || *interval < 1s || *interval > 60s) {
    return refuse_usage(console,
                        "--interval: \"" + flags.interval + "\" is not a duration of 1s to 60s");
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  auto sandbox_ids = wanted_sandboxes(*client, flags);
  if (!sandbox_ids) {
    return fail_call(console, flags.follow ? "watch stats" : "get stats", sandbox_ids.error());
  }
  if (!flags.follow) return show_once(console, *client, flags, *sandbox_ids);
  return follow_all(console, *client, flags, *sandbox_ids, *interval);
}

}  // namespace

void add_stats(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "stats", "Show resource usage of sandboxes", show_stats);
  command.add_option(
      "sandbox_id", flags.sandbox_ids,
      "Sandbox IDs, or their beginnings (default: all sandboxes that are ready now)");
  command.add_flag("-f,--follow", flags.follow, "Keep printing until the sandboxes are deleted");
  flags.interval_flag =
      command
          .add_option("--interval", flags.interval,
                      "With --follow: time between measurements, 1s to 60s (default 1s)")
          ->type_name("DURATION")
          ->take_last();
  command.add_flag("--json", flags.json, "Print one JSON object per line");
}

}  // namespace agbox::cli
