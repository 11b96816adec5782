// SPDX-License-Identifier: Apache-2.0
// A daemon that is nothing but guest links, for the tests of the guest in real containers: takes
// one JSON object per line from stdin, answers with one per line on stdout, in any order, by "id".
// Events (a guest came, a guest is lost, an exec ended) are lines with "event". It ends when stdin
// does.
#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <istream>
#include <map>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/hex.h"
#include "guestlink/guest_link.h"
#include "guestlink/guest_program.h"

namespace agbox::guestlink {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;

void print(const json::object& line) {
  const std::string text = json::serialize(line) + "\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string text_of(const json::object& request, const char* key) {
  const json::value* value = request.if_contains(key);
  return value == nullptr ? "" : std::string(value->as_string());
}

std::int64_t number_of(const json::object& request, const char* key, std::int64_t otherwise) {
  const json::value* value = request.if_contains(key);
  return value == nullptr ? otherwise : value->as_int64();
}

std::vector<std::string> texts_of(const json::object& request, const char* key) {
  std::vector<std::string> texts;
  if (const json::value* value = request.if_contains(key)) {
    for (const json::value& text : value->as_array()) texts.emplace_back(text.as_string());
  }
  return texts;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

json::object describe(const GuestHello& hello) {
  json::array mounts;
  for (const GuestMount& mount : hello.mounts) {
    mounts.push_back(json::object{{"target", mount.target},
                                  {"device", mount.device},
                                  {"inode", mount.inode},
                                  {"failure", mount.failure}});
  }
  json::array notes;
  for (const std::string& note : hello.notes) notes.emplace_back(note);
  json::array execs;
  for (const std::string& exec : hello.execs) execs.emplace_back(exec);
  return {{"protocol", hello.protocol},
          {"build_id", hello.build_id},
          {"phase", static_cast<int>(hello.phase)},
          {"pid", hello.process.pid},
          {"start_time", hello.process.start_time},
          {"failure", hello.failure},
          {"notes", notes},
          {"execs", execs},
          {"mounts", mounts}};
}

json::object describe(const ExecEnd& end) {
  const auto how = [&] {
    switch (end.how) {
      case ExecEnd::How::Exited:
        return "exited";
      case ExecEnd::How::Signaled:
        return "signaled";
      case ExecEnd::How::NotStarted:
        return "not started";
      case ExecEnd::How::Cancelled:
        return "cancelled";
      case ExecEnd::How::RunnerLost:
        return "runner lost";
    }
    return "";
  };
  return {{"exec", end.exec_id},
          {"how", how()},
          {"code", end.code},
          {"detail", end.detail},
          {"output_truncated", end.output_truncated},
          {"user_cpu_microseconds", end.user_cpu_microseconds},
          {"system_cpu_microseconds", end.system_cpu_microseconds},
          {"peak_memory_bytes", end.peak_memory_bytes}};
}

UniqueFd log_file(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

ExecOrder exec_order_in(const json::object& request) {
  return {.exec_id = text_of(request, "exec"),
          .command = texts_of(request, "command"),
          .working_directory = text_of(request, "cwd"),
          .environment = texts_of(request, "env"),
          .output_limit_bytes = static_cast<std::uint64_t>(number_of(request, "limit", 0))};
}

OutputFiles output_files_in(const json::object& request) {
  return {.out = log_file(text_of(request, "out")),
          .err = log_file(text_of(request, "err")),
          .free_space_reserve_bytes = static_cast<std::uint64_t>(number_of(request, "reserve", 0))};
}

Expectation expectation_in(const json::object& request) {
  Expectation expectation;
  if (request.contains("secret")) expectation.secret = from_hex(text_of(request, "secret"));
  expectation.process.pid = static_cast<pid_t>(number_of(request, "pid", 0));
  expectation.process.start_time = static_cast<std::uint64_t>(number_of(request, "start_time", 0));
  expectation.uid = static_cast<std::uint32_t>(number_of(request, "uid", ::getuid()));
  expectation.gid = static_cast<std::uint32_t>(number_of(request, "gid", ::getgid()));
  if (const json::value* gids = request.if_contains("supplemental_gids")) {
    for (const json::value& gid : gids->as_array()) {
      expectation.supplemental_gids.push_back(static_cast<std::uint32_t>(gid.as_int64()));
    }
  }
  expectation.image_user = text_of(request, "image_user");
  for (const std::string& target : texts_of(request, "mounts")) {
    expectation.mounts.push_back({target, false});
  }
  for (const std::string& target : texts_of(request, "volumes")) {
    expectation.mounts.push_back({target, true});
  }
  return expectation;
}

// Prints what the guest of one sandbox reports.
class Printer final : public GuestListener {
 public:
  explicit Printer(std::string sandbox) : sandbox_(std::move(sandbox)) {}

  void guest_connected(const GuestHello& hello) override {
    print_event("connected", describe(hello));
  }
  void guest_lost(const std::string& why) override { print_event("lost", {{"why", why}}); }
  void exec_ended(const ExecEnd& end) override { print_event("exec_ended", describe(end)); }
  void exec_not_sent(const std::string& exec, const std::string& why) override {
    print_event("exec_not_sent", {{"exec", exec}, {"why", why}});
  }
  void exec_truncated(const std::string& exec) override {
    print_event("exec_truncated", {{"exec", exec}});
  }

 private:
  void print_event(const char* event, json::object line) const {
    line["event"] = event;
    line["sandbox"] = sandbox_;
    print(line);
  }

  std::string sandbox_;
};

class LinkDaemon {
 public:
  LinkDaemon(asio::io_context& io, const std::string& state_root)
      : input_(io, ::dup(STDIN_FILENO)),
        state_root_(state_root),
        executor_(io.get_executor()),
        conversations_(executor_),
        requests_(io.get_executor()) {}

  asio::awaitable<void> run() {
    asio::streambuf buffer;
    while (true) {
      const auto [problem, size] = co_await asio::async_read_until(
          input_, buffer, '\n', asio::as_tuple(asio::use_awaitable));
      if (problem) break;
      std::string line;
      std::istream stream(&buffer);
      std::getline(stream, line);
      requests_.spawn("request", serve(json::parse(line).as_object()));
    }
    for (const auto& [sandbox, open] : links_) open.link->close();
    co_await conversations_.join();
    co_await requests_.join();
  }

 private:
  asio::awaitable<void> serve(json::object request) {
    auto answer = co_await answer_to(request);
    json::object line = answer ? *answer : json::object{{"error", answer.error().message()}};
    line["id"] = number_of(request, "id", 0);
    print(line);
  }

  asio::awaitable<Result<json::object>> answer_to(json::object request) {
    const std::string verb = text_of(request, "do");
    const std::string sandbox = text_of(request, "sandbox");
    const milliseconds limit(number_of(request, "limit_ms", 20000));
    const auto deadline = std::chrono::steady_clock::now() + limit;
    if (verb == "install") {
      AGBOX_CO_TRY(program, install_guest_program(text_of(request, "source"), state_root_));
      co_return json::object{{"path", program.path.string()}, {"sha256", program.sha256}};
    }
    if (verb == "make") {
      AGBOX_CO_TRY(directory, LinkDirectory::make(state_root_, sandbox));
      const DirectoryIdentity identity = directory.identity();
      const std::string path = directory.path();
      open(sandbox, std::move(directory));
      co_return json::object{
          {"directory", path}, {"device", identity.device}, {"inode", identity.inode}};
    }
    if (verb == "hello") {
      AGBOX_CO_TRY(link, find(sandbox));
      AGBOX_CO_TRY(hello, co_await link->hello(deadline));
      co_return describe(hello);
    }
    if (verb == "entrypoint") {
      AGBOX_CO_TRY(link, find(sandbox));
      AGBOX_CO_TRY(outcome, co_await link->entrypoint(deadline));
      if (!outcome.failure) co_return json::object{{"passed", true}};
      co_return json::object{{"passed", false},
                             {"code", outcome.failure->code},
                             {"tail", outcome.failure->output_tail},
                             {"sentence", outcome.failure->sentence()}};
    }
    if (verb == "ping") {
      const auto before = std::chrono::steady_clock::now();
      AGBOX_CO_TRY(link, find(sandbox));
      AGBOX_CO_TRY_VOID(co_await link->ping(limit));
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - before;
      co_return json::object{{"ms", took.count()}};
    }
    AGBOX_CO_TRY(done, command(verb, sandbox, request));
    co_return done;
  }

  Result<json::object> command(const std::string& verb, const std::string& sandbox,
                               const json::object& request) {
    if (verb == "adopt") {
      const DirectoryIdentity identity{static_cast<std::uint64_t>(number_of(request, "device", 0)),
                                       static_cast<std::uint64_t>(number_of(request, "inode", 0))};
      AGBOX_TRY(directory, LinkDirectory::adopt(state_root_, sandbox, identity));
      open(sandbox, std::move(directory));
      return json::object{};
    }
    if (verb == "forget") {
      close(sandbox);
      AGBOX_TRY_VOID(LinkDirectory::remove(LinkDirectory::path_of(state_root_, sandbox)));
      return json::object{};
    }
    AGBOX_TRY(link, find(sandbox));
    if (verb == "expect") {
      AGBOX_TRY_VOID(link->expect(expectation_in(request)));
    } else if (verb == "go") {
      GoOrder order{.secret = new_secret(),
                    .entrypoint = texts_of(request, "entrypoint"),
                    .command = texts_of(request, "command"),
                    .entrypoint_limit = milliseconds(number_of(request, "limit_ms", 20000))};
      AGBOX_TRY_VOID(link->go(order));
      return json::object{{"secret", to_hex(order.secret)}};
    } else if (verb == "stop") {
      AGBOX_TRY_VOID(link->stop());
    } else if (verb == "start_exec") {
      AGBOX_TRY_VOID(link->start_exec(exec_order_in(request), output_files_in(request)));
    } else if (verb == "cancel_exec") {
      AGBOX_TRY_VOID(link->cancel_exec(text_of(request, "exec"),
                                       milliseconds(number_of(request, "grace_ms", 2000))));
    } else if (verb == "forget_exec") {
      AGBOX_TRY_VOID(link->forget_exec(text_of(request, "exec")));
    } else {
      return fail(reason::kInvalidArgument, "unknown request '" + verb + "'");
    }
    return json::object{};
  }

  Result<std::shared_ptr<GuestLink>> find(const std::string& sandbox) const {
    const auto open = links_.find(sandbox);
    if (open != links_.end()) return open->second.link;
    return fail(reason::kInvalidArgument, "sandbox " + sandbox + " has no link to a guest");
  }
  void open(const std::string& sandbox, LinkDirectory directory) {
    close(sandbox);
    auto printer = std::make_unique<Printer>(sandbox);
    auto link = std::make_shared<GuestLink>(executor_, std::move(directory), LinkLimits(), *printer,
                                            conversations_, Logger().with({"sandbox_id", sandbox}));
    links_[sandbox] = {.printer = std::move(printer), .link = std::move(link)};
  }
  void close(const std::string& sandbox) {
    const auto open = links_.extract(sandbox);
    if (open) open.mapped().link->close();
  }

  struct OpenLink {
    std::unique_ptr<Printer> printer;
    std::shared_ptr<GuestLink> link;
  };

  asio::posix::stream_descriptor input_;
  std::filesystem::path state_root_;
  asio::any_io_executor executor_;
  std::map<std::string, OpenLink> links_;
  TaskGroup conversations_;
  TaskGroup requests_;
};

}  // namespace
}  // namespace agbox::guestlink

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: guest_link_daemon <state_root>\n", stderr);
    return 2;
  }
  boost::asio::io_context io(1);
  agbox::guestlink::LinkDaemon daemon(io, argv[1]);
  boost::asio::co_spawn(io, daemon.run(), [](const std::exception_ptr& failure) {
    if (failure) agbox::die("an exception left the link daemon");
  });
  io.run();
  return 0;
}
