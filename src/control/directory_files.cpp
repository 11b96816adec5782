// SPDX-License-Identifier: Apache-2.0
// The part of the directory that handles copies into and out of running sandboxes. Nothing of them
// is stored: a daemon that ends, ends them, and its clients see that.
#include <algorithm>
#include <utility>

#include "control/directory.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"

namespace agbox {

// Counts a copy for as long as it exists. The sandbox may be purged before.
class Directory::CountedCopy {
 public:
  CountedCopy(Directory& directory, std::string sandbox_id)
      : directory_(directory), sandbox_id_(std::move(sandbox_id)) {
    change(+1);
  }
  ~CountedCopy() { change(-1); }
  CountedCopy(const CountedCopy&) = delete;
  CountedCopy& operator=(const CountedCopy&) = delete;

 private:
  void change(int by) {
    directory_.file_copies_ += static_cast<std::size_t>(by);
    if (const auto actor = directory_.find(sandbox_id_)) (*actor)->count_file_copies(by);
  }

  Directory& directory_;
  std::string sandbox_id_;
};

Task Directory::transfer_files(std::string sandbox_id, FileOrder order, OnFilePipe on_open,
                               Reply<FilesReport> reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  auto run = [](Reply<FilesReport> done, Call<FilesReport> call) -> boost::asio::awaitable<void> {
    done(co_await std::move(call));
  };
  return services_.tasks.spawn(
      "files", run(std::move(reply),
                   transfer_files(std::move(sandbox_id), std::move(order), std::move(on_open))));
}

Directory::Call<FilesReport> Directory::transfer_files(std::string sandbox_id, FileOrder order,
                                                       OnFilePipe on_open) {
  const auto checked = [&]() -> Result<SandboxActor*> {
    AGBOX_TRY(actor, find(sandbox_id));
    AGBOX_TRY_VOID(actor->check_takes_execs());
    return actor;
  };
  AGBOX_CO_TRY(actor, checked());
  if (!actor->check_reaches_guest(/*container=*/"") && !engine_asked_->is_set()) {
    AGBOX_CO_TRY_VOID(co_await wait_for(engine_asked_));
    AGBOX_CO_TRY(again, checked());
    actor = again;
  }
  AGBOX_CO_TRY_VOID(actor->check_reaches_guest(/*container=*/""));
  if (file_copies_ >= maxima::kFileCopies ||
      actor->file_copies() >= maxima::kFileCopiesPerSandbox) {
    co_return fail(reason::kResourceExhausted,
                   "copies of files: at most " + std::to_string(maxima::kFileCopiesPerSandbox) +
                       " of one sandbox and " + std::to_string(maxima::kFileCopies) +
                       " of all are possible at a time; wait until one of them ends",
                   {{"sandbox_id", sandbox_id}});
  }
  const CountedCopy counted(*this, sandbox_id);
  auto report = co_await actor->place().transfer_files(std::move(order), std::move(on_open));
  if (!report) {
    co_return fail(report.error().reason(),
                   "sandbox " + sandbox_id + ": " + report.error().message(),
                   {{"sandbox_id", sandbox_id}});
  }
  if (report->failure) {
    co_return fail(report->failure->reason(), report->failure->message(),
                   {{"sandbox_id", sandbox_id}});
  }
  co_return std::move(*report);
}

}  // namespace agbox
