// SPDX-License-Identifier: Apache-2.0
// Connection attempts from inside that the daemon requests, to addresses that no sandbox may reach.
// Each is reported once: refused, connected or unknown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guest/watch.h"

namespace agbox::guest {

class ConnectionProbes {
 public:
  using Report = std::function<void(const v1::ConnectionTried&)>;

  explicit ConnectionProbes(Report report) : report_(std::move(report)) {}

  void begin(const v1::TryConnection& request);
  void collect(Watches& watches);
  // Reports those past their deadline.
  void end_overdue();
  // Drops all without a report.
  void cancel_all() { probes_.clear(); }

 private:
  struct Probe {
    std::uint64_t id = 0;
    UniqueFd socket;
    Moment deadline;
  };
  void on_ready(std::uint64_t id);
  void report(std::uint64_t id, int problem);
  void report_unknown(std::uint64_t id, std::string detail);

  Report report_;
  std::vector<Probe> probes_;
};

}  // namespace agbox::guest
