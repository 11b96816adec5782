// SPDX-License-Identifier: Apache-2.0
// Looks at files of this machine that callers name. Their disk may hang: then that create or start
// fails with the name of the file, and no other one waits for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "async/cancellation.h"
#include "async/disk_calls.h"
#include "base/result.h"
#include "ingress/mount_source.h"

namespace agbox {

class SourceCalls {
 public:
  SourceCalls(const boost::asio::any_io_executor& executor, std::chrono::milliseconds limit);

  // Runs `work(InspectedNow&)`, which returns a Result and owns all that it uses, on another
  // thread. `names` is what it may inspect. HOST_NOT_READY if one of them takes longer than the
  // limit, or hangs since an earlier call.
  template <class Work>
  boost::asio::awaitable<std::invoke_result_t<Work, InspectedNow&>> run(
      std::vector<std::string> names, Work work) {
    AGBOX_CO_TRY_VOID(check_none_hangs(names));
    auto inspected = std::make_shared<InspectedNow>();
    if (!names.empty()) inspected->set(names.front());
    AGBOX_CO_TRY(call, calls_.start([inspected, work = std::move(work)]() mutable {
      return work(*inspected);
    }));
    auto done = co_await call.wait(std::chrono::steady_clock::now() + limit_);
    if (done) co_return std::move(*done);
    if (co_await is_cancelled()) co_return fail(reason::kCancelled, "cancelled");
    hanging_.push_back(inspected);
    co_return hangs(inspected->name());
  }

 private:
  // A hanging disk takes one thread per file, and not one per attempt.
  Result<> check_none_hangs(const std::vector<std::string>& names);
  std::unexpected<Error> hangs(const std::string& name) const;

  std::chrono::milliseconds limit_;
  std::vector<std::weak_ptr<InspectedNow>> hanging_;  // owned by their threads
  DiskCalls calls_;
};

}  // namespace agbox
