// SPDX-License-Identifier: Apache-2.0
#include "control/upkeep/janitor.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/await_callback.h"
#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

// Awaits which of the IDs were once used and are purged.
asio::awaitable<Result<std::vector<std::string>>> read_purged(Store& store,
                                                              std::vector<std::string> ids) {
  return await_callback<Result<std::vector<std::string>>>(
      [&store, ids = std::move(ids)](auto done) mutable {
        store.read_purged(std::move(ids), std::move(done));
      });
}

}  // namespace

asio::awaitable<OperationResult<>> Janitor::sweep_once() {
  AGBOX_CO_TRY_VOID(co_await services_.engine.sweep(claims_));
  AGBOX_CO_TRY_VOID(co_await sweep_guest_directories());
  co_return co_await sweep_exec_logs();
}

asio::awaitable<OperationResult<>> Janitor::sweep_guest_directories() {
  auto claimed = [this] {
    std::set<std::string> sandbox_ids;
    for (const std::string& sandbox_id : claims_.sandbox_ids()) {
      // A deleted sandbox's directory was removed before its end was reported.
      const bool is_deleted = claims_.claim_of(sandbox_id).kind == SandboxClaim::Kind::Deleted;
      if (!is_deleted) sandbox_ids.insert(sandbox_id);
    }
    for (const UnknownPrimary& primary : services_.engine.unknown_primaries()) {
      sandbox_ids.insert(primary.sandbox_id);
    }
    return sandbox_ids;
  };
  AGBOX_CO_TRY(removed, co_await step("janitor.guest_directories",
                                      services_.place.remove_unclaimed(std::move(claimed))));
  for (const std::string& directory : removed) {
    log_.warn("orphaned guest directory is removed",
              {{"directory", directory}, {"reason", "no sandbox of this store has it"}});
  }
  co_return OperationResult<>{};
}

// The root may be a directory of the user's own, with anything in it. A directory is ours if its
// name is the ID of a sandbox that this store once had; it is an orphan if that sandbox is purged.
asio::awaitable<OperationResult<>> Janitor::sweep_exec_logs() {
  AGBOX_CO_TRY(unclaimed, co_await step("janitor.outputs", services_.place.list_outputs()));
  for (const std::string& sandbox_id : claims_.sandbox_ids()) std::erase(unclaimed, sandbox_id);
  if (unclaimed.empty()) co_return OperationResult<>{};
  AGBOX_CO_TRY(purged, co_await step("janitor.purged", read_purged(services_.store, unclaimed)));
  for (const std::string& sandbox_id : purged) {
    log_.warn("orphaned output directory is removed",
              {{"sandbox_id", sandbox_id}, {"reason", "its sandbox is purged"}});
    AGBOX_CO_TRY_VOID(
        allow(co_await step("janitor.remove_output",
                            services_.place.remove_output(sandbox_id, services_.created_with))));
  }
  co_return OperationResult<>{};
}

OperationResult<> Janitor::allow(const OperationResult<>& removed) const {
  if (removed || !is_definite(removed.error())) return removed;
  log_.warn("an orphan stays", {{"error", removed.error().message()}});
  return {};
}

}  // namespace agbox
