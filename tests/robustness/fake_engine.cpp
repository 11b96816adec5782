// SPDX-License-Identifier: Apache-2.0
// A fake engine that outlives killed daemons: FakeDocker with a guest in every container. Runs
// until SIGTERM; test_fake_engine_kills.py starts it.
//
//   fake_engine DIRECTORY IMAGE
//
// Its first line is the path of its socket. Guests support one command,
//
//   sh -c SCRIPT ID SECONDS CODE [WRITTEN FILE...]
//
// and behave like the script of the robustness tests: write ID to a file of the container, here
// DIRECTORY/<container id>, to the output, and to WRITTEN in a mount; print each FILE, which is in
// a mount or was copied; and exit with CODE after SECONDS. Services may have the command "echo WORD
// >>FILE" for them, which writes WORD to the same file of the container.
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/file_io.h"
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
    if (command.size() == 3 && command[1] == "-lc") return run_hook(container, exec_id, command[2]);
    AGBOX_CHECK(command.size() >= 6,
                "a command is: sh -c SCRIPT ID SECONDS CODE [WRITTEN FILE...]");
    const std::string line = command[3] + "\n";
    const fake::Container& inside = *docker_.engine().find_container(container);
    std::ofstream(directory_ / inside.id, std::ios::app) << line;
    std::string output = line;
    if (command.size() > 6) std::ofstream(source_of(inside, command[6]), std::ios::app) << line;
    for (std::size_t i = 7; i < command.size(); ++i) output += content_of(inside, command[i]);
    AGBOX_CHECK(write_all(exec.out.get(), output) == 0, "write the output of an exec");
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
  void run_hook(const std::string& container, const std::string& exec_id,
                const std::string& script) {
    constexpr std::string_view kEcho = "echo ";
    AGBOX_CHECK(script.starts_with(kEcho), "a command of a service is: echo WORD >>FILE");
    const std::string word =
        script.substr(kEcho.size(), script.find(' ', kEcho.size()) - kEcho.size());
    std::ofstream(directory_ / docker_.engine().find_container(container)->id, std::ios::app)
        << word << '\n';
    guests_.end_exec(container, exec_id, 0);
  }

  // The host's path of a file in one of the container's mounts; empty if it is in none.
  static std::string source_of(const fake::Container& container, const std::string& path) {
    for (const auto& mount : container.spec.at("HostConfig").at("Mounts").as_array()) {
      const std::string target(mount.at("Target").as_string());
      if (path.starts_with(target + "/")) {
        return std::string(mount.at("Source").as_string()) + path.substr(target.size());
      }
    }
    return {};
  }

  std::string content_of(const fake::Container& container, const std::string& path) const {
    if (const std::string source = source_of(container, path); !source.empty()) {
      std::ifstream file(source);
      return {std::istreambuf_iterator(file), {}};
    }
    const std::filesystem::path file(path);
    return file_in(guests_.tree(container.id, file.parent_path()), file.filename());
  }

  // A short file of a tar archive; empty if it has none of that name.
  static std::string file_in(const std::string& archive, const std::string& name) {
    constexpr std::size_t block = 512;
    constexpr std::size_t size_field = 124;
    for (std::size_t at = 0; at + block <= archive.size() && archive[at] != 0;) {
      const std::string found = archive.c_str() + at;
      const std::size_t size = std::stoul(archive.substr(at + size_field, 12), nullptr, 8);
      if (found == name || found.ends_with("/" + name)) return archive.substr(at + block, size);
      at += block + (size + block - 1) / block * block;
    }
    return {};
  }

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
