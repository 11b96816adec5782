// SPDX-License-Identifier: Apache-2.0
// The part of the directory that handles leases: clients that hold sandboxes, and sandboxes that no
// client holds any more. Nothing of a hold is stored: a daemon that ends, ends them, and the next
// one starts the leases again.
#include <utility>

#include "control/directory.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"

namespace agbox {

// Holds a sandbox for as long as it exists. The sandbox may be purged before.
class Directory::Hold {
 public:
  Hold(Directory& directory, SandboxActor& actor) : directory_(directory), sandbox_id_(actor.id()) {
    ++directory_.holds_;
    actor.lease().add_holder();
  }
  ~Hold() {
    --directory_.holds_;
    if (const auto actor = directory_.find(sandbox_id_)) (*actor)->lease().remove_holder();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Directory& directory_;
  std::string sandbox_id_;
};

Task Directory::hold(std::string sandbox_id, OnHeld on_held, Reply<void> reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  auto run = [](Reply<void> done, Call<void> call) -> boost::asio::awaitable<void> {
    done(co_await std::move(call));
  };
  return services_.tasks.spawn(
      "hold", run(std::move(reply), hold(std::move(sandbox_id), std::move(on_held))));
}

Directory::Call<void> Directory::hold(std::string sandbox_id, OnHeld on_held) {
  AGBOX_CO_TRY(actor, find(sandbox_id));
  if (const auto holdable = actor->check_holdable(); !holdable) {
    co_return co_await actor->refuse(holdable.error()).wait();
  }
  if (holds_ >= maxima::kHolds) {
    co_return fail(reason::kResourceExhausted,
                   "holds of sandboxes: at most " + std::to_string(maxima::kHolds) +
                       " are possible at a time; end calls of HoldSandbox that are not needed",
                   {{"sandbox_id", sandbox_id}});
  }
  const Hold held(*this, *actor);
  const std::shared_ptr<Event> ended = actor->lease().ended();
  if (!co_await on_held(*actor->lease().ttl()) || !co_await ended->wait()) {
    co_return fail(reason::kCancelled, "cancelled");
  }
  co_return Result<>{};
}

void Directory::lease_is_due(const std::string& sandbox_id) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (keeps_unheld_) return;
  if (const auto actor = find(sandbox_id)) (*actor)->lease_is_due();
}

}  // namespace agbox
