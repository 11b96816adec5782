// SPDX-License-Identifier: Apache-2.0
// The daemon's end of a guest link as a whole, with a guest that does anything: the input is a
// program of the steps of both, in the language of guest_link/program.h. It runs on one thread over
// real sockets. After each step the loop runs until it is idle, and the promises of
// guest_link/promises.h must hold. No time passes: a limit has expired when it begins, or never
// does.
//
// The seeds are written by hand: each is one story, and together they reach every message.
#include <google/protobuf/stubs/logging.h>
#include <sanitizer/allocator_interface.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/uuid.h"
#include "fuzz/guest_link/daemon_side.h"
#include "fuzz/guest_link/guest_side.h"
#include "fuzz/guest_link/program.h"
#include "fuzz/guest_link/promises.h"

namespace agbox::guestlink {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMaxSteps = 2560;
// What a guest can make the daemon keep: a message of 1 MiB that it has not read yet, one that it
// knows, and the ids of 16,384 execs. The promises keep as much again.
constexpr std::size_t kMaxKept = std::size_t{32} << 20;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

class Session {
 public:
  explicit Session(const fs::path& root)
      : daemon_(io_.get_executor(), root, promises_, [this](EventKind event) { handle(event); }),
        guest_(promises_) {}

  void run(std::vector<Step> steps) {
    for (Step& step : steps) {
      if (step.inside) {
        in_handlers_[*step.inside].push_back(std::move(step));
        continue;
      }
      for (unsigned i = 0; i < step.times && steps_ < kMaxSteps; ++i) {
        perform(step);
        if (step.settles) settle();
      }
    }
    shut_down();
    guest_.read_on_every_connection();
    guest_.exchange();
    for (const GuestSocket& connection : guest_.connections()) {
      AGBOX_CHECK(!connection.is_open(), "a link that was closed keeps no connection");
    }
    daemon_.remove_directory();
  }

 private:
  void perform(const Step& step) {
    ++steps_;
    if (step.letter == 'Q') {
      if (is_in_handler_) return;  // a daemon does not end in its own handler
      shut_down();
      return daemon_.start(step.arguments[0], step.arguments[1]);
    }
    if (step.is_daemons()) return daemon_.perform(step);
    guest_.perform(step, daemon_.directory());
  }

  void handle(EventKind event) {
    auto& steps = in_handlers_[event];
    if (steps.empty()) return;
    const Step step = std::move(steps.front());
    steps.pop_front();
    const bool was_in_handler = std::exchange(is_in_handler_, true);
    perform(step);
    is_in_handler_ = was_in_handler;
  }

  void shut_down() {
    daemon_.begin_shutdown();
    settle();
    daemon_.end_shutdown();
  }

  // Until nothing is left to do before the next step.
  void settle() {
    promises_.loop_begins();
    while (io_.poll() > 0 || guest_.exchange()) {
    }
    check();
  }

  void check() const {
    promises_.check_idle(daemon_.callers());
    AGBOX_CHECK(daemon_.is_connected() == promises_.is_connected(),
                "a guest is connected from its event to its loss");
    unsigned welcomed = 0;
    bool does_guest_read = true;
    for (const GuestSocket& connection : guest_.connections()) {
      if (!connection.is_open()) continue;
      if (connection.was_welcomed()) ++welcomed;
      does_guest_read = does_guest_read && connection.reads();
    }
    if (does_guest_read) {
      AGBOX_CHECK(welcomed <= 1, "a link has one guest");
      promises_.check_orders_arrived();
    }
    AGBOX_CHECK(__sanitizer_get_current_allocated_bytes() <
                    allocated_before_ + kMaxKept + daemon_.bytes_ordered() + guest_.bytes_kept(),
                "a guest cannot make the daemon keep more than a few messages");
  }

  std::size_t allocated_before_ = __sanitizer_get_current_allocated_bytes();
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  Promises promises_;
  unsigned steps_ = 0;
  std::map<EventKind, std::deque<Step>> in_handlers_;
  bool is_in_handler_ = false;
  DaemonSide daemon_;
  GuestSide guest_;
};

// Of this process, for the sandbox's directory.
class Root {
 public:
  Root() { fs::create_directories(path_); }
  ~Root() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_ = fs::temp_directory_path() / ("agbox-guest-link-fuzz-" + random_uuid());
};

}  // namespace
}  // namespace agbox::guestlink

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  agbox::set_log_level(agbox::LogLevel::Error);
  google::protobuf::SetLogHandler(nullptr);  // a line for every text that is not UTF-8
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agbox::guestlink;
  static const Root root;
  const std::size_t descriptors = open_descriptors();
  {
    Session session(root.path());
    // libFuzzer speaks bytes, ours are chars.
    session.run(Program({reinterpret_cast<const char*>(data), size}).steps());
  }
  AGBOX_CHECK(open_descriptors() == descriptors, "no descriptor is left open");
  return 0;
}
