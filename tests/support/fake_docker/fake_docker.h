// SPDX-License-Identifier: Apache-2.0
// A container engine for tests: fake::Engine behind a real Unix socket in a directory of its own,
// which can be told to misbehave. A fault is set for a call, written "METHOD /path" without the
// version;
// `*` stands for any text, and containers and networks may be written by name however the client
// addresses them:
//
//   FakeDocker docker(io);
//   docker.engine().add_image("busybox");
//   docker.reply("POST /containers/agbox-primary-s1/start", 500, R"({"message":"no space left"})");
//
// It lives on the given loop, or, made without one, on a thread of its own. Nothing in it waits for
// time to pass. With a thread of its own, reach the engine through with_engine().
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "support/fake_docker/fake_engine.h"

namespace agbox {

namespace fake {
struct Server;
}

class FakeDocker {
 public:
  static constexpr int kForever = -1;

  explicit FakeDocker(boost::asio::io_context& io);
  FakeDocker();
  ~FakeDocker();

  const std::string& socket_path() const;

  // On the same loop.
  fake::Engine& engine();
  // From another thread.
  void with_engine(const std::function<void(fake::Engine&)>& use);

  // Each is for the next `times` such calls; the newest fault that matches a call counts.
  void reply(std::string_view call, int status, std::string_view body, int times = kForever);
  void hang(std::string_view call, int times = kForever);         // reads it, never answers
  void drop(std::string_view call, int times = kForever);         // closes without doing it
  void lose_answer(std::string_view call, int times = kForever);  // does it, then closes
  void garble(std::string_view call, std::string_view bytes, int times = kForever);
  void hold(std::string_view call, int times = kForever);  // does and answers it after release()
  void release(std::string_view call);                     // the pattern given to hold()
  void clear_faults();

  int calls(std::string_view call);      // that came
  int held(std::string_view call);       // that hang or are held now
  int abandoned(std::string_view call);  // whose client went away while they hung or were held
  std::vector<std::string> call_log();
  void forget_calls();

  int open_connections();
  int event_streams();
  // The engine dies: every connection breaks and nobody listens. Containers stay as they are.
  void stop_listening();
  void listen();
  void drop_event_streams();
  void send_raw_event(std::string_view line);

  // The containers' and networks' names, for "nothing was left behind".
  std::vector<std::string> container_names();
  std::vector<std::string> network_names();

 private:
  template <class Use>
  auto on_loop(Use use);

  std::unique_ptr<boost::asio::io_context> own_io_;
  std::shared_ptr<fake::Server> server_;  // sessions on a shared loop may outlive this object
  std::thread thread_;
};

}  // namespace agbox
