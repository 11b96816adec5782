// SPDX-License-Identifier: Apache-2.0
#include "unit/control/living_guests.h"

#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "base/file_io.h"
#include "guestwire/place.h"
#include "model/object_names.h"

namespace agbox {

namespace asio = boost::asio;
using guest::v1::ToDaemon;

struct LivingGuests::Guest {
  Guest(const asio::any_io_executor& executor, GuestScript its_script)
      : link(executor), pause(executor), script(std::move(its_script)) {}

  guestlink::ScriptedGuest link;
  asio::steady_timer pause;
  GuestScript script;
  std::string container_id;
  std::string container_name;
  std::filesystem::path directory;
  std::map<std::string, std::string> sources;  // of its container's mounts, by target
  guest::v1::Phase phase = guest::v1::PHASE_FRESH;
  std::string secret;
  std::optional<guest::v1::Go> order;
  std::map<std::string, GivenExec> execs;
  std::vector<std::string> claimed;
  bool is_connected = false;
  bool is_frozen = false;
  bool has_ended = false;

  void end_exec(const std::string& exec_id, guest::v1::ExecEnded end) {
    GivenExec& exec = execs.at(exec_id);
    exec.out.reset();
    exec.err.reset();
    exec.end = std::move(end);
    if (is_connected) tell_end(exec);
  }
  void tell_end(const GivenExec& exec) {
    ToDaemon message;
    *message.mutable_exec_ended() = *exec.end;
    link.send_now(message);
  }

  void end() {
    has_ended = true;
    link.close();
    pause.cancel();
  }
};

LivingGuests::LivingGuests(asio::any_io_executor executor, FakeDocker& docker)
    : executor_(std::move(executor)), docker_(docker) {
  fake::Engine& engine = docker_.engine();
  engine.on_start = [this](fake::Container& container) {
    if (container.labels.at(component_label()) != "companion") begin(container);
  };
  // The guest of a companion joins what runs.
  engine.on_exec = [this](fake::Container& container, const fake::Exec& exec) {
    if (exec.command.front() == guestwire::kProgramInside) begin(container);
  };
  engine.on_change = [this, others = engine.on_change] {
    end_those_without_a_container();
    others();
  };
}

void LivingGuests::begin(const fake::Container& container) {
  auto guest = std::make_shared<Guest>(executor_, script);
  guest->container_id = container.id;
  guest->container_name = container.name;
  const auto& host = container.spec.at("HostConfig").as_object();
  for (const auto& mount : host.at("Mounts").as_array()) {
    if (mount.at("Target").as_string() == guestwire::kLinkDirectoryInside) {
      guest->directory = std::string(mount.at("Source").as_string());
    }
    guest->sources[std::string(mount.at("Target").as_string())] = mount.at("Source").as_string();
  }
  // The daemon takes only the one that it has just started.
  if (const auto former = guests_.find(container.id); former != guests_.end()) {
    former->second->end();
  }
  guests_[container.id] = guest;
  if (!script.connects) return;
  ++alive_;
  asio::co_spawn(executor_, live(guest), [this](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
    --alive_;
  });
}

void LivingGuests::end_those_without_a_container() {
  for (auto entry = guests_.begin(); entry != guests_.end();) {
    const auto container = docker_.engine().containers.find(entry->first);
    if (container != docker_.engine().containers.end() && container->second.is_running()) {
      ++entry;
      continue;
    }
    entry->second->end();
    entry = guests_.erase(entry);
  }
}

void LivingGuests::end_all() {
  for (const auto& [id, guest] : guests_) guest->end();
  guests_.clear();
}

// Like the real one it tries again and again: the daemon may be away for a while.
asio::awaitable<void> LivingGuests::live(std::shared_ptr<Guest> self) {
  while (!self->has_ended) {
    if (!self->is_frozen && co_await self->link.connect(self->directory)) co_await converse(self);
    self->is_connected = false;
    if (self->has_ended) co_return;
    self->pause.expires_after(std::chrono::milliseconds(2));
    co_await self->pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

asio::awaitable<void> LivingGuests::converse(std::shared_ptr<Guest> self) {
  const auto welcome = co_await self->link.shake_hands(self->phase, self->secret);
  if (!welcome || !welcome->has_welcome()) co_return;
  ToDaemon prepared;
  prepared.mutable_prepared()->set_failure(self->script.preparation_failure);
  for (const guest::v1::Mount& mount : welcome->welcome().mounts()) {
    guest::v1::MountSeen& seen = *prepared.mutable_prepared()->add_mounts();
    seen.set_target(mount.target());
    struct stat status{};
    const auto source = self->sources.find(mount.target());
    if (source == self->sources.end()) continue;
    if (::stat(source->second.c_str(), &status) != 0) seen.set_failure(std::strerror(errno));
    seen.set_device(status.st_dev);
    seen.set_inode(status.st_ino);
  }
  if (self->script.alters_preparation) {
    self->script.alters_preparation(*prepared.mutable_prepared());
  }
  if (self->phase == guest::v1::PHASE_FRESH) self->phase = guest::v1::PHASE_PREPARED;
  co_await self->link.send(prepared);
  std::vector<std::string> known = self->claimed;
  for (const auto& [exec_id, exec] : self->execs) known.push_back(exec_id);
  co_await self->link.send(guestlink::ScriptedGuest::execs_known(known));
  self->is_connected = true;
  for (const auto& [exec_id, exec] : self->execs) {
    if (exec.end) self->tell_end(exec);
  }
  while (const auto message = co_await self->link.receive()) {
    ToDaemon answer;
    if (message->has_ping()) {
      answer.mutable_pong()->set_id(message->ping().id());
    } else if (message->has_try_connection()) {
      tried_.push_back(message->try_connection());
      if (!self->script.reaches) continue;
      answer.mutable_connection_tried()->set_id(message->try_connection().id());
      answer.mutable_connection_tried()->set_outcome(*self->script.reaches);
    } else if (message->has_receive_tree()) {
      copied_.push_back(message->receive_tree().target());
      answer.mutable_tree_received()->set_id(message->receive_tree().id());
      answer.mutable_tree_received()->set_failure(self->script.copy_failure);
      // It comes from another thread, so waiting for its end here blocks nothing that it needs.
      const UniqueFd stream = std::move(self->link.descriptors.at(0));
      self->link.descriptors.pop_front();
      trees_[{self->container_id, message->receive_tree().target()}] =
          read_all(stream.get(), std::size_t{1} << 20).value_or("");
    } else if (message->has_go()) {
      self->order = message->go();
      self->secret = message->go().secret();
      self->phase = guest::v1::PHASE_ENTRYPOINT;
      if (!self->script.answers_go) continue;
      if (self->script.entrypoint_failure.empty()) {
        self->phase = guest::v1::PHASE_PASSED;
        answer.mutable_entrypoint_passed();
      } else {
        self->phase = guest::v1::PHASE_FAILED;
        auto* failed = answer.mutable_entrypoint_failed();
        failed->set_cause(guest::v1::EntrypointFailed::CAUSE_EXITED);
        failed->set_code(3);
        failed->set_output_tail(self->script.entrypoint_failure);
      }
    } else {
      on_exec_message(*self, *message);
      continue;
    }
    co_await self->link.send(answer);
  }
}

void LivingGuests::on_exec_message(Guest& self, const guest::v1::ToGuest& message) {
  const auto take_descriptor = [&] {
    UniqueFd fd = std::move(self.link.descriptors.at(0));
    self.link.descriptors.pop_front();
    return fd;
  };
  if (message.has_start_exec()) {
    GivenExec exec{
        .order = message.start_exec(), .out = take_descriptor(), .err = take_descriptor()};
    const std::string exec_id = exec.order.exec_id();
    if (!self.execs.try_emplace(exec_id, std::move(exec)).second) return;
    begun_.push_back(exec_id);
    if (on_begun) on_begun(self.container_name, exec_id);
  } else if (message.has_cancel_exec()) {
    const std::string& exec_id = message.cancel_exec().exec_id();
    const auto exec = self.execs.find(exec_id);
    if (exec == self.execs.end() || exec->second.end) return;
    exec->second.cancel = message.cancel_exec();
    if (!self.script.cancel_ends_execs) return;
    guest::v1::ExecEnded end;
    end.set_exec_id(exec_id);
    end.set_how(guest::v1::ExecEnded::HOW_CANCELLED);
    self.end_exec(exec_id, std::move(end));
  } else if (message.has_forget_exec()) {
    self.execs.erase(message.forget_exec().exec_id());
  } else if (message.has_attach_input()) {
    guest::v1::ToDaemon answer;
    guest::v1::InputAttached* attached = answer.mutable_input_attached();
    attached->set_id(message.attach_input().id());
    attached->set_outcome(self.script.input);
    attached->set_detail("the test says so");
    UniqueFd pipe = take_descriptor();
    if (const auto exec = self.execs.find(message.attach_input().exec_id());
        exec != self.execs.end()) {
      attached->set_position(100 * exec->second.inputs.size());
      exec->second.inputs.push_back(std::move(pipe));
    }
    self.link.send_now(answer);
  } else if (message.has_end_input() || message.has_resize_terminal() ||
             message.has_signal_exec()) {
    const std::string& exec_id = message.has_end_input() ? message.end_input().exec_id()
                                 : message.has_resize_terminal()
                                     ? message.resize_terminal().exec_id()
                                     : message.signal_exec().exec_id();
    self.execs.at(exec_id).orders.push_back(message);
  }
}

LivingGuests::Guest* LivingGuests::find(const std::string& container) const {
  for (const auto& [id, guest] : guests_) {
    if (guest->container_name == container) return guest.get();
  }
  return nullptr;
}

bool LivingGuests::is_connected(const std::string& container) const {
  const Guest* guest = find(container);
  return guest != nullptr && guest->is_connected;
}

const guest::v1::Go* LivingGuests::order(const std::string& container) const {
  const Guest* guest = find(container);
  return guest != nullptr && guest->order ? &*guest->order : nullptr;
}

GivenExec* LivingGuests::exec(const std::string& container, const std::string& exec_id) const {
  Guest* guest = find(container);
  if (guest == nullptr) return nullptr;
  const auto exec = guest->execs.find(exec_id);
  return exec == guest->execs.end() ? nullptr : &exec->second;
}

void LivingGuests::end_exec(const std::string& container, const std::string& exec_id,
                            int exit_code) {
  guest::v1::ExecEnded end;
  end.set_how(guest::v1::ExecEnded::HOW_EXITED);
  end.set_code(exit_code);
  end_exec(container, exec_id, std::move(end));
}

void LivingGuests::end_exec(const std::string& container, const std::string& exec_id,
                            guest::v1::ExecEnded end) {
  Guest* guest = find(container);
  AGBOX_CHECK(guest != nullptr && guest->execs.contains(exec_id), "the guest has this exec");
  end.set_exec_id(exec_id);
  guest->end_exec(exec_id, std::move(end));
}

void LivingGuests::truncate_exec(const std::string& container, const std::string& exec_id) {
  say(container, guestlink::ScriptedGuest::exec_truncated(exec_id));
}

void LivingGuests::say(const std::string& container, const ToDaemon& message) {
  Guest* guest = find(container);
  AGBOX_CHECK(guest != nullptr && guest->is_connected, "the guest is connected");
  guest->link.send_now(message);
}

void LivingGuests::claim(const std::string& container, std::vector<std::string> exec_ids) {
  find(container)->claimed = std::move(exec_ids);
}

void LivingGuests::freeze(const std::string& container) {
  find(container)->is_frozen = true;
}

void LivingGuests::thaw(const std::string& container) {
  find(container)->is_frozen = false;
}

void LivingGuests::cut(const std::string& container) {
  Guest* guest = find(container);
  AGBOX_CHECK(guest != nullptr, "the container has a guest");
  guest->is_connected = false;
  guest->link.close();
}

}  // namespace agbox
