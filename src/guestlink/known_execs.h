// SPDX-License-Identifier: Apache-2.0
// Which execs a guest can have on one connection: those that it said it knows when it came, and
// those that it was given since. Each may be reported as truncated and as ended once, truncated not
// after ended: whatever else a guest says about execs is a lie, and what it can say is bounded.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace agbox::guestlink {

class KnownExecs {
 public:
  enum class Word {
    Heard,
    TooLate,  // about an exec that was forgotten while the word was on its way: no offence
    Lie,
  };

  // False where it is here already.
  bool add(std::string_view exec_id);
  bool contains(std::string_view exec_id) const { return execs_.contains(exec_id); }
  std::size_t size() const { return execs_.size(); }

  Word ended(std::string_view exec_id);
  Word truncated(std::string_view exec_id);

  // Nobody wants to hear of it any more. False where it is not here.
  bool forget(std::string_view exec_id);
  void clear() { execs_.clear(); }

 private:
  struct Told {
    bool ended = false;
    bool truncated = false;
    bool forgotten = false;
  };
  std::map<std::string, Told, std::less<>> execs_;
};

}  // namespace agbox::guestlink
