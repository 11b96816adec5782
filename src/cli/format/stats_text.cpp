// SPDX-License-Identifier: Apache-2.0
#include "cli/format/stats_text.h"

#include <array>
#include <cstdio>
#include <optional>

namespace agbox::cli {

namespace {

constexpr const char* kUnknown = "--";

// With `digits` decimals.
std::string decimal(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

template <class Message>
double seconds_of(const Message& value) {
  return static_cast<double>(value.seconds()) + static_cast<double>(value.nanos()) / 1e9;
}

std::string both(std::uint64_t first, std::uint64_t second) {
  return bytes_text(first) + " / " + bytes_text(second);
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const int digits = unit == 0 || value >= 100 ? 0 : 1;
  return decimal(value, digits) + kUnits.at(unit);
}

std::vector<std::string> StatsTable::header() {
  return {"SANDBOX ID",  "CONTAINER",          "CPU %", "CPU TIME", "MEM USAGE / LIMIT", "MEM PEAK",
          "NET RX / TX", "BLOCK READ / WRITE", "PIDS"};
}

std::vector<std::vector<std::string>> StatsTable::rows(const v1::SandboxStats& stats) {
  std::vector<std::vector<std::string>> rows;
  const double time = seconds_of(stats.time());
  for (const v1::ContainerStats& container : stats.containers()) {
    const std::pair key(stats.sandbox_id(), container.name());
    std::vector<std::string> row{stats.sandbox_id(), container.name()};
    if (!container.running()) {
      earlier_.erase(key);
      row.emplace_back("not running");
      row.resize(header().size(), kUnknown);
      rows.push_back(std::move(row));
      continue;
    }
    const double cpu_time = seconds_of(container.cpu_time());
    std::string usage = kUnknown;
    // A counter that is smaller is that of another start.
    const auto before = earlier_.find(key);
    if (before != earlier_.end() && time > before->second.time &&
        cpu_time >= before->second.cpu_time) {
      const double share = (cpu_time - before->second.cpu_time) / (time - before->second.time);
      usage = decimal(share * 100, 1) + "%";
    }
    earlier_[key] = {.time = time, .cpu_time = cpu_time};
    row.push_back(std::move(usage));
    row.push_back(decimal(cpu_time, 2) + "s");
    row.push_back(both(container.memory_bytes(), container.memory_limit_bytes()));
    row.push_back(container.has_memory_peak_bytes() ? bytes_text(container.memory_peak_bytes())
                                                    : kUnknown);
    row.push_back(both(container.network_rx_bytes(), container.network_tx_bytes()));
    row.push_back(both(container.block_read_bytes(), container.block_write_bytes()));
    row.push_back(std::to_string(container.pids()));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace agbox::cli
