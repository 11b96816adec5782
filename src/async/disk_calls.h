// SPDX-License-Identifier: Apache-2.0
// Blocking work on disks that may hang for good, such as one of the network. A call that hangs
// holds up no other, which gets another thread, and nobody has to wait for its end. A call that
// timed out continues on its own, so its work owns all that it uses.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "async/condition.h"
#include "base/result.h"

namespace agbox {

template <class T>
class DiskCall {
 public:
  struct Outcome {
    explicit Outcome(const boost::asio::any_io_executor& executor) : changed(executor) {}
    std::optional<T> value;
    Condition changed;
  };

  explicit DiskCall(std::shared_ptr<Outcome> outcome) : outcome_(std::move(outcome)) {}

  // nullopt if it has not ended by then, or the caller was cancelled. May be repeated until it
  // ends.
  boost::asio::awaitable<std::optional<T>> wait(std::chrono::steady_clock::time_point deadline) {
    const auto outcome = outcome_;
    co_await outcome->changed.wait([&] { return outcome->value.has_value(); }, deadline);
    co_return std::move(outcome->value);
  }

 private:
  std::shared_ptr<Outcome> outcome_;
};

class DiskCalls {
 public:
  // At most `most` calls at a time, including those that timed out. `held` threads exist from
  // the start, because the kernel may refuse others: then calls wait for one of these. Throws
  // std::system_error if it refuses them too.
  DiskCalls(boost::asio::any_io_executor executor, int held, int most);
  // Waits a moment for calls that are about to end, and drops those that have not begun.
  ~DiskCalls();
  DiskCalls(const DiskCalls&) = delete;

  // Callers wait for it on the executor's thread. RESOURCE_EXHAUSTED if there are too many.
  template <class Work>
  Result<DiskCall<std::invoke_result_t<Work>>> start(Work work) {
    using Value = std::invoke_result_t<Work>;
    auto outcome = std::make_shared<typename DiskCall<Value>::Outcome>(executor_);
    AGBOX_TRY_VOID(add(std::make_unique<WorkJob<Work>>(outcome, std::move(work))));
    return DiskCall<Value>(std::move(outcome));
  }

 private:
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() = 0;
    // Once, after run().
    virtual void deliver(const boost::asio::any_io_executor& executor) = 0;
  };

  template <class Work>
  class WorkJob final : public Job {
   public:
    using Value = std::invoke_result_t<Work>;
    WorkJob(std::shared_ptr<typename DiskCall<Value>::Outcome> outcome, Work work)
        : outcome_(std::move(outcome)), work_(std::move(work)) {}

    void run() override {
      value_.emplace((*work_)());
      work_.reset();  // with what it has open
    }
    void deliver(const boost::asio::any_io_executor& executor) override {
      boost::asio::post(executor,
                        [outcome = std::move(outcome_), value = std::move(value_)]() mutable {
                          outcome->value = std::move(value);
                          outcome->changed.notify();
                        });
    }

   private:
    std::shared_ptr<typename DiskCall<Value>::Outcome> outcome_;
    std::optional<Work> work_;
    std::optional<Value> value_;
  };

  struct Shared;  // with the threads, which may outlive this object
  static void start_thread(const std::shared_ptr<Shared>& shared, bool is_held);
  static void serve(Shared& shared, bool is_held);
  Result<> add(std::unique_ptr<Job> job);

  boost::asio::any_io_executor executor_;
  int most_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace agbox
