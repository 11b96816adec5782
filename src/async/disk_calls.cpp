// SPDX-License-Identifier: Apache-2.0
#include "async/disk_calls.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace agbox {
namespace {

// The end of the daemon has four seconds.
constexpr std::chrono::milliseconds kLastMoment{500};

}  // namespace

struct DiskCalls::Shared {
  std::mutex mutex;
  std::condition_variable has_work;
  std::condition_variable has_ended;
  std::deque<std::unique_ptr<Job>> waiting;
  int calls = 0;  // waiting, or in progress
  int threads = 0;
  std::size_t idle_threads = 0;
  std::optional<boost::asio::any_io_executor> executor;  // none once the owner is gone
};

DiskCalls::DiskCalls(boost::asio::any_io_executor executor, int held, int most)
    : executor_(std::move(executor)), most_(most), shared_(std::make_shared<Shared>()) {
  shared_->executor = executor_;
  const std::lock_guard lock(shared_->mutex);
  for (int i = 0; i < held; ++i) start_thread(shared_, /*is_held=*/true);
}

DiskCalls::~DiskCalls() {
  std::unique_lock lock(shared_->mutex);
  shared_->executor.reset();
  const auto dropped = std::exchange(shared_->waiting, {});
  shared_->has_work.notify_all();
  shared_->has_ended.wait_for(lock, kLastMoment, [this] { return shared_->threads == 0; });
}

Result<> DiskCalls::add(std::unique_ptr<Job> job) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->calls >= most_) {
    return fail(reason::kResourceExhausted,
                std::to_string(most_) +
                    " accesses to files of this host have not ended; does a disk hang?");
  }
  ++shared_->calls;
  shared_->waiting.push_back(std::move(job));
  if (shared_->idle_threads >= shared_->waiting.size()) {
    shared_->has_work.notify_one();
    return {};
  }
  try {
    start_thread(shared_, /*is_held=*/false);
  } catch (const std::system_error&) {
    return {};  // it waits for one of those that exist
  }
  return {};
}

// Call with the lock.
void DiskCalls::start_thread(const std::shared_ptr<Shared>& shared, bool is_held) {
  // std::thread: detached, because its work may never end.
  std::thread([shared, is_held] { serve(*shared, is_held); }).detach();
  ++shared->threads;
}

void DiskCalls::serve(Shared& shared, bool is_held) {
  std::unique_lock lock(shared.mutex);
  while (true) {
    while (shared.waiting.empty() && is_held && shared.executor) {
      ++shared.idle_threads;
      shared.has_work.wait(lock);
      --shared.idle_threads;
    }
    if (shared.waiting.empty()) break;
    const std::unique_ptr<Job> job = std::move(shared.waiting.front());
    shared.waiting.pop_front();
    lock.unlock();
    job->run();
    lock.lock();
    if (shared.executor) job->deliver(*shared.executor);
    --shared.calls;
  }
  --shared.threads;
  shared.has_ended.notify_all();
}

}  // namespace agbox
