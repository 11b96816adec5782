// SPDX-License-Identifier: Apache-2.0
// Which execs a guest can have on one connection: those that it reported on connect, and those that
// it was sent since. Each may be reported as truncated and as ended once, truncated not after
// ended. Any other report is a protocol violation, so what a guest can report is bounded.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace agbox::guestlink {

class KnownExecs {
 public:
  enum class Verdict {
    Accepted,
    TooLate,  // about an exec that was forgotten while the report was in flight: no violation
    Violation,
  };

  // False if it exists already.
  bool add(std::string_view exec_id);
  bool contains(std::string_view exec_id) const { return execs_.contains(exec_id); }
  std::size_t size() const { return execs_.size(); }

  Verdict ended(std::string_view exec_id);
  Verdict truncated(std::string_view exec_id);

  // Further reports are ignored. False if it does not exist.
  bool forget(std::string_view exec_id);
  // It was never sent.
  void remove(const std::string& exec_id) { execs_.erase(exec_id); }
  void clear() { execs_.clear(); }

 private:
  struct Reports {
    bool ended = false;
    bool truncated = false;
    bool forgotten = false;
  };
  std::map<std::string, Reports, std::less<>> execs_;
};

}  // namespace agbox::guestlink
