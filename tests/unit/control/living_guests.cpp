// SPDX-License-Identifier: Apache-2.0
#include "unit/control/living_guests.h"

#include <boost/asio/co_spawn.hpp>
#include <chrono>

#include "control/container_settings.h"

namespace agbox {

namespace asio = boost::asio;
using guest::v1::ToDaemon;

struct LivingGuests::Guest {
  Guest(const asio::any_io_executor& executor, GuestScript its_script)
      : link(executor), pause(executor), script(std::move(its_script)) {}

  guestlink::ScriptedGuest link;
  asio::steady_timer pause;
  GuestScript script;
  std::string container_name;
  std::filesystem::path folder;
  guest::v1::Phase phase = guest::v1::PHASE_FRESH;
  std::string secret;
  std::optional<guest::v1::Go> order;
  bool is_connected = false;
  bool has_ended = false;

  void end() {
    has_ended = true;
    link.close();
    pause.cancel();
  }
};

LivingGuests::LivingGuests(asio::any_io_executor executor, FakeDocker& docker)
    : executor_(std::move(executor)), docker_(docker) {
  fake::Engine& engine = docker_.engine();
  engine.on_start = [this](fake::Container& container) { begin(container); };
  engine.on_change = [this, others = engine.on_change] {
    end_those_without_a_container();
    others();
  };
}

void LivingGuests::begin(const fake::Container& container) {
  auto guest = std::make_shared<Guest>(executor_, script);
  guest->container_name = container.name;
  const auto& host = container.spec.at("HostConfig").as_object();
  for (const auto& mount : host.at("Mounts").as_array()) {
    if (mount.at("Target").as_string() == kLinkTarget) {
      guest->folder = std::string(mount.at("Source").as_string());
    }
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
    if (co_await self->link.connect(self->folder)) co_await converse(self);
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
  if (self->phase == guest::v1::PHASE_FRESH) self->phase = guest::v1::PHASE_PREPARED;
  co_await self->link.send(prepared);
  self->is_connected = true;
  while (const auto message = co_await self->link.receive()) {
    ToDaemon answer;
    if (message->has_ping()) {
      answer.mutable_pong()->set_id(message->ping().id());
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
      continue;
    }
    co_await self->link.send(answer);
  }
}

bool LivingGuests::is_connected(const std::string& container) const {
  for (const auto& [id, guest] : guests_) {
    if (guest->container_name == container) return guest->is_connected;
  }
  return false;
}

const guest::v1::Go* LivingGuests::order(const std::string& container) const {
  for (const auto& [id, guest] : guests_) {
    if (guest->container_name == container && guest->order) return &*guest->order;
  }
  return nullptr;
}

}  // namespace agbox
