// SPDX-License-Identifier: Apache-2.0
// A fake engine that outlives killed daemons: FakeDocker with a guest in every container. Runs
// until SIGTERM; test_fake_engine_kills.py starts it.
//
//   fake_engine DIRECTORY IMAGE
//
// Its first line is the path of its socket. Guests support one command,
//
//   sh -c SCRIPT ID SECONDS CODE
//
// and behave like the script of the robustness tests: write ID to a file of the container, here
// DIRECTORY/<container id>, and to the output, and exit with CODE after SECONDS.
#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "support/fake_docker/fake_docker.h"
#include "unit/control/living_guests.h"

namespace agbox {
namespace {

namespace asio = boost::asio;

class Commands {
 public:
  Commands(asio::io_context& io, FakeDocker& docker, LivingGuests& guests,
           std::filesystem::path directory)
      : io_(io), docker_(docker), guests_(guests), directory_(std::move(directory)) {}

  void begin(const std::string& container, const std::string& exec_id) {
    const GivenExec& exec = *guests_.exec(container, exec_id);
    const std::vector<std::string> command(exec.order.command().begin(),
                                           exec.order.command().end());
    AGBOX_CHECK(command.size() == 6, "a command is: sh -c SCRIPT ID SECONDS CODE");
    const std::string line = command[3] + "\n";
    std::ofstream(directory_ / docker_.engine().find_container(container)->id, std::ios::app)
        << line;
    AGBOX_CHECK(
        ::write(exec.out.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()),
        "write the output of an exec");
    const std::chrono::duration<double> length(std::stod(command[4]));
    const int code = std::stoi(command[5]);
    auto timer = std::make_shared<asio::steady_timer>(
        io_, std::chrono::duration_cast<std::chrono::nanoseconds>(length));
    timer->async_wait([this, timer, container, exec_id, code](boost::system::error_code) {
      const GivenExec* still = guests_.exec(container, exec_id);
      // Its container may have ended, or it was cancelled.
      if (still != nullptr && !still->end) guests_.end_exec(container, exec_id, code);
    });
  }

 private:
  asio::io_context& io_;
  FakeDocker& docker_;
  LivingGuests& guests_;
  std::filesystem::path directory_;
};

void serve(const std::string& directory, const std::string& image) {
  asio::io_context io(1);
  FakeDocker docker(io);
  docker.engine().add_image(image);
  LivingGuests guests(io.get_executor(), docker);
  Commands commands(io, docker, guests, directory);
  guests.on_begun = [&](const std::string& container, const std::string& exec_id) {
    commands.begin(container, exec_id);
  };
  asio::signal_set ends(io, SIGTERM);
  ends.async_wait([&](boost::system::error_code, int) { io.stop(); });
  std::printf("%s\n", docker.socket_path().c_str());
  std::fflush(stdout);
  io.run();
}

}  // namespace
}  // namespace agbox

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: fake_engine FOLDER IMAGE\n", stderr);
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  agbox::serve(arguments[1], arguments[2]);
  return 0;
}
