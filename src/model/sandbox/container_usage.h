// SPDX-License-Identifier: Apache-2.0
// What a container uses, as counters since its start.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace agbox {

struct ContainerUsage {
  bool is_running = false;
  std::chrono::nanoseconds cpu_time{0};  // of all CPUs
  std::chrono::nanoseconds user_cpu{0};
  std::chrono::nanoseconds system_cpu{0};
  std::uint64_t memory_bytes = 0;  // without files that can be dropped from the cache
  std::uint64_t memory_limit_bytes = 0;
  std::optional<std::uint64_t> memory_peak_bytes{};  // if it is known
  std::uint64_t pids = 0;
  std::uint64_t network_rx_bytes = 0;
  std::uint64_t network_tx_bytes = 0;
  std::uint64_t block_read_bytes = 0;
  std::uint64_t block_write_bytes = 0;

  bool operator==(const ContainerUsage&) const = default;
};

}  // namespace agbox
