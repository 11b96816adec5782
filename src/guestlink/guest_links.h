// SPDX-License-Identifier: Apache-2.0
// The links to all guests, by sandbox. One per daemon; everything runs on the executor's thread.
//
// The life of a link: make() before the container is created, whose mounts need the folder's path;
// expect() before each start of the container; hello(); go(); entrypoint(). After a restart of the
// daemon: adopt() and expect() with the stored secret. rest() when the container is stopped, and
// adopt() before its next start. forget() once the container is gone.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_checker.h"
#include "guestlink/guest_link.h"
#include "guestlink/guest_report.h"
#include "guestlink/link_folder.h"
#include "model/guest/guest_error.h"

namespace agbox::guestlink {

struct GuestLinksEvents {
  std::function<void(const std::string& sandbox_id, const GuestHello&)> connected;
  std::function<void(const std::string& sandbox_id, const std::string& why)> lost;
  // Of execs that this sandbox's guest was given, or said that it has: a hostile one may name those
  // of other sandboxes when it comes.
  std::function<void(const std::string& sandbox_id, const ExecEnd&)> exec_ended{};
  std::function<void(const std::string& sandbox_id, const std::string& exec_id)> exec_truncated{};
};

struct LinkPlace {
  std::filesystem::path folder;  // to be mounted read-only at guestwire::kLinkDirectoryInside
  FolderIdentity identity;       // to be stored
};

class GuestLinks {
 public:
  using Deadline = GuestLink::Deadline;

  // `root` holds the folders of this instance's sandboxes and of no others. What takes long with
  // them is done on `blocking`.
  GuestLinks(boost::asio::any_io_executor executor, boost::asio::any_io_executor blocking,
             std::filesystem::path root, GuestLinksEvents events, Logger log,
             LinkLimits limits = {});

  // `made_below` is the root that the sandbox was made with; today's where it is empty. Unavailable
  // while what has its name is being removed.
  GuestResult<LinkPlace> make(const std::string& sandbox_id,
                              const std::filesystem::path& made_below = {});
  GuestResult<> adopt(const std::string& sandbox_id, FolderIdentity stored,
                      const std::filesystem::path& made_below = {});

  GuestResult<> expect(const std::string& sandbox_id, Expectation expectation);
  // Its container may have ended: hello() and entrypoint() tell Doubted once.
  void doubt(const std::string& sandbox_id);
  boost::asio::awaitable<GuestResult<GuestHello>> hello(std::string sandbox_id, Deadline deadline);
  GuestResult<> go(const std::string& sandbox_id, const GoOrder& order);
  boost::asio::awaitable<GuestResult<EntrypointOutcome>> entrypoint(std::string sandbox_id,
                                                                    Deadline deadline);
  boost::asio::awaitable<GuestResult<>> ping(std::string sandbox_id,
                                             std::chrono::milliseconds limit);
  boost::asio::awaitable<GuestResult<ProbeReport>> probe(std::string sandbox_id,
                                                         ProbeTarget target);
  GuestResult<> stop(const std::string& sandbox_id);

  // An error means that the guest did not get the order and never will: nothing of it is kept.
  Result<> start_exec(const std::string& sandbox_id, ExecOrder order);
  // The grace between SIGTERM and SIGKILL.
  Result<> cancel_exec(const std::string& sandbox_id, const std::string& exec_id,
                       std::chrono::milliseconds grace);
  // Its end is on disk.
  Result<> forget_exec(const std::string& sandbox_id, const std::string& exec_id);
  // A guest is here and has told which execs it has.
  bool is_connected(const std::string& sandbox_id) const;
  // Why start_exec() would be refused now, or that it would not.
  Result<> takes_execs(const std::string& sandbox_id) const;

  // While the container does not run: the link ends, its folder stays for adopt().
  void rest(const std::string& sandbox_id);
  // Last of all: the folder must outlive the container.
  boost::asio::awaitable<Result<>> forget(std::string sandbox_id,
                                          std::filesystem::path made_below = {});
  // Removes the folders below today's root of all sandboxes but the claimed ones, and returns their
  // paths. The claims are asked for once the folders are listed, so that none is too old.
  boost::asio::awaitable<Result<std::vector<std::filesystem::path>>> remove_unclaimed(
      std::function<std::set<std::string>()> claimed_sandbox_ids);

  // Ends every conversation; guests stay and come back to the next daemon. Before destruction.
  boost::asio::awaitable<void> shutdown();

 private:
  const std::filesystem::path& root(const std::filesystem::path& made_below) const {
    return made_below.empty() ? root_ : made_below;
  }
  void add(const std::string& sandbox_id, LinkFolder folder);
  GuestResult<std::shared_ptr<GuestLink>> find(const std::string& sandbox_id) const;

  ThreadChecker thread_;
  boost::asio::any_io_executor executor_;
  boost::asio::any_io_executor blocking_;
  std::filesystem::path root_;
  GuestLinksEvents events_;
  Logger log_;
  LinkLimits limits_;
  std::map<std::string, std::shared_ptr<GuestLink>> links_;  // shared with their coroutines
  std::set<std::filesystem::path> being_removed_;            // by remove_unclaimed()
  TaskGroup tasks_;
};

}  // namespace agbox::guestlink
