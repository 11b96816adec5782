// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_links.h"

namespace agbox::guestlink {

namespace asio = boost::asio;

GuestLinks::GuestLinks(asio::any_io_executor executor, std::filesystem::path root,
                       GuestLinksEvents events, Logger log, LinkLimits limits)
    : executor_(std::move(executor)),
      root_(std::move(root)),
      events_(std::move(events)),
      log_(std::move(log)),
      limits_(limits),
      tasks_(executor_) {}

Result<LinkPlace> GuestLinks::make(const std::string& sandbox_id,
                                   const std::filesystem::path& made_below) {
  AGBOX_TRY(folder, LinkFolder::make(root(made_below), sandbox_id));
  LinkPlace place{folder.path(), folder.identity()};
  add(sandbox_id, std::move(folder));
  return place;
}

GuestResult<> GuestLinks::adopt(const std::string& sandbox_id, FolderIdentity stored,
                                const std::filesystem::path& made_below) {
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
  const auto link = links_.find(sandbox_id);
  return link != links_.end() && link->second->is_connected();
}

Result<> GuestLinks::takes_execs(const std::string& sandbox_id) const {
  AGBOX_TRY(link, find(sandbox_id));
  return link->takes_execs();
}

void GuestLinks::rest(const std::string& sandbox_id) {
  const auto link = links_.find(sandbox_id);
  if (link == links_.end()) return;
  link->second->close();
  links_.erase(link);
}

Result<> GuestLinks::forget(const std::string& sandbox_id,
                            const std::filesystem::path& made_below) {
  rest(sandbox_id);
  return LinkFolder::remove(root(made_below), sandbox_id);
}

asio::awaitable<void> GuestLinks::shutdown() {
  for (const auto& [sandbox_id, link] : links_) link->close();
  links_.clear();
  co_await tasks_.join();
}

}  // namespace agbox::guestlink
