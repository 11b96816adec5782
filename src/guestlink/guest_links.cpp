// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_links.h"

#include <utility>

#include "async/run_blocking.h"

namespace agbox::guestlink {

namespace asio = boost::asio;

GuestLinks::GuestLinks(asio::any_io_executor executor, asio::any_io_executor blocking,
                       std::filesystem::path root, GuestLinksEvents events, Logger log,
                       LinkLimits limits)
    : executor_(std::move(executor)),
      blocking_(std::move(blocking)),
      root_(std::move(root)),
      events_(std::move(events)),
      log_(std::move(log)),
      limits_(limits),
      tasks_(executor_) {}

GuestResult<LinkPlace> GuestLinks::make(const std::string& sandbox_id,
                                        const std::filesystem::path& made_below) {
  AGBOX_ON_ITS_THREAD(thread_);
  if (being_removed_.contains(LinkFolder::path_of(root(made_below), sandbox_id))) {
    return guest_fail(GuestErrorKind::Unavailable,
                      "what another sandbox left in the guest's folder is being removed");
  }
  auto made = LinkFolder::make(root(made_below), sandbox_id);
  if (!made) return guest_fail(GuestErrorKind::Refused, made.error().message());
  LinkFolder folder = std::move(*made);
  LinkPlace place{folder.path(), folder.identity()};
  add(sandbox_id, std::move(folder));
  return place;
}

GuestResult<> GuestLinks::adopt(const std::string& sandbox_id, FolderIdentity stored,
                                const std::filesystem::path& made_below) {
  AGBOX_ON_ITS_THREAD(thread_);
  AGBOX_TRY(folder, LinkFolder::adopt(root(made_below), sandbox_id, stored));
  add(sandbox_id, std::move(folder));
  return {};
}

void GuestLinks::add(const std::string& sandbox_id, LinkFolder folder) {
  LinkEvents events{.connected =
                        [this, sandbox_id](const GuestHello& hello) {
                          if (events_.connected) events_.connected(sandbox_id, hello);
                        },
                    .lost =
                        [this, sandbox_id](const std::string& why) {
                          if (events_.lost) events_.lost(sandbox_id, why);
                        },
                    .exec_ended =
                        [this, sandbox_id](const ExecEnd& end) {
                          if (events_.exec_ended) events_.exec_ended(sandbox_id, end);
                        },
                    .exec_truncated =
                        [this, sandbox_id](const std::string& exec_id) {
                          if (events_.exec_truncated) events_.exec_truncated(sandbox_id, exec_id);
                        }};
  auto& link = links_[sandbox_id];
  if (link) link->close();
  link = std::make_shared<GuestLink>(executor_, std::move(folder), limits_, std::move(events),
                                     tasks_, log_.with({"sandbox_id", sandbox_id}));
}

GuestResult<std::shared_ptr<GuestLink>> GuestLinks::find(const std::string& sandbox_id) const {
  AGBOX_ON_ITS_THREAD(thread_);
  const auto link = links_.find(sandbox_id);
  if (link != links_.end()) return link->second;
  return guest_fail(GuestErrorKind::Silent, "sandbox " + sandbox_id + " has no link to a guest");
}

GuestResult<> GuestLinks::expect(const std::string& sandbox_id, Expectation expectation) {
  AGBOX_TRY(link, find(sandbox_id));
  return link->expect(std::move(expectation));
}

void GuestLinks::doubt(const std::string& sandbox_id) {
  if (const auto link = find(sandbox_id)) (*link)->doubt();
}

asio::awaitable<GuestResult<GuestHello>> GuestLinks::hello(std::string sandbox_id,
                                                           Deadline deadline) {
  AGBOX_CO_TRY(link, find(sandbox_id));
  co_return co_await link->hello(deadline);
}

GuestResult<> GuestLinks::go(const std::string& sandbox_id, const GoOrder& order) {
  AGBOX_TRY(link, find(sandbox_id));
  return link->go(order);
}

asio::awaitable<GuestResult<EntrypointOutcome>> GuestLinks::entrypoint(std::string sandbox_id,
                                                                       Deadline deadline) {
  AGBOX_CO_TRY(link, find(sandbox_id));
  co_return co_await link->entrypoint(deadline);
}

asio::awaitable<GuestResult<>> GuestLinks::ping(std::string sandbox_id,
                                                std::chrono::milliseconds limit) {
  AGBOX_CO_TRY(link, find(sandbox_id));
  co_return co_await link->ping(limit);
}

asio::awaitable<GuestResult<ProbeReport>> GuestLinks::probe(std::string sandbox_id,
                                                            ProbeTarget target) {
  AGBOX_CO_TRY(link, find(sandbox_id));
  co_return co_await link->probe(target);
}

GuestResult<> GuestLinks::stop(const std::string& sandbox_id) {
  AGBOX_TRY(link, find(sandbox_id));
  return link->stop();
}

Result<> GuestLinks::start_exec(const std::string& sandbox_id, ExecOrder order) {
  AGBOX_TRY(link, find(sandbox_id));
  return link->start_exec(std::move(order));
}

Result<> GuestLinks::cancel_exec(const std::string& sandbox_id, const std::string& exec_id,
                                 std::chrono::milliseconds grace) {
  AGBOX_TRY(link, find(sandbox_id));
  return link->cancel_exec(exec_id, grace);
}

Result<> GuestLinks::forget_exec(const std::string& sandbox_id, const std::string& exec_id) {
  AGBOX_TRY(link, find(sandbox_id));
  return link->forget_exec(exec_id);
}

bool GuestLinks::is_connected(const std::string& sandbox_id) const {
  AGBOX_ON_ITS_THREAD(thread_);
  const auto link = links_.find(sandbox_id);
  return link != links_.end() && link->second->is_connected();
}

Result<> GuestLinks::takes_execs(const std::string& sandbox_id) const {
  AGBOX_TRY(link, find(sandbox_id));
  return link->takes_execs();
}

void GuestLinks::rest(const std::string& sandbox_id) {
  AGBOX_ON_ITS_THREAD(thread_);
  const auto link = links_.find(sandbox_id);
  if (link == links_.end()) return;
  link->second->close();
  links_.erase(link);
}

asio::awaitable<Result<>> GuestLinks::forget(std::string sandbox_id,
                                             std::filesystem::path made_below) {
  rest(sandbox_id);
  co_return co_await run_blocking(blocking_,
                                  [path = LinkFolder::path_of(root(made_below), sandbox_id)] {
                                    return LinkFolder::remove(path);
                                  });
}

asio::awaitable<Result<std::vector<std::filesystem::path>>> GuestLinks::remove_unclaimed(
    std::function<std::set<std::string>()> claimed_sandbox_ids) {
  AGBOX_CO_TRY(found,
               co_await run_blocking(blocking_, [root = root_] { return LinkFolder::list(root); }));
  std::set<std::filesystem::path> unclaimed(found.begin(), found.end());
  for (const std::string& sandbox_id : claimed_sandbox_ids()) {
    unclaimed.erase(LinkFolder::path_of(root_, sandbox_id));
  }
  being_removed_ = unclaimed;
  auto removed = co_await run_blocking(blocking_, [&unclaimed]() -> Result<> {
    for (const std::filesystem::path& path : unclaimed) AGBOX_TRY_VOID(LinkFolder::remove(path));
    return {};
  });
  being_removed_.clear();
  if (!removed) co_return std::unexpected(std::move(removed.error()));
  co_return std::vector<std::filesystem::path>(unclaimed.begin(), unclaimed.end());
}

asio::awaitable<void> GuestLinks::shutdown() {
  for (const auto& [sandbox_id, link] : links_) link->close();
  links_.clear();
  co_await tasks_.join();
}

}  // namespace agbox::guestlink
