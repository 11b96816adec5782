// SPDX-License-Identifier: Apache-2.0
// A guest that does what an honest one does until it is told to go, and then lies in one way for as
// long as its container lives.
#pragma once

#include <sys/types.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guestwire/frame.h"

namespace agbox::hostile {

namespace v1 = guest::v1;

class Liar {
 public:
  // The name of a lie, then an exec ID for those that need one.
  explicit Liar(const std::string& words);

  [[noreturn]] void live();

 private:
  void behave_until_go();
  void lie();

  // The lies. Each returns when its connection ends, and is repeated on the next one.
  void end_execs_of_others();
  void end_what_runs();
  void flood();
  void send_too_long_frames();
  void list_execs_without_end();
  void come_without_the_secret();
  void come_and_go();
  void come_in_crowds();
  void never_read();

  // Protocol steps; false or nullopt if the connection has ended.
  bool connect();
  UniqueFd open_connection() const;
  bool is_taken_in(std::string_view secret);
  bool come_in(const std::vector<std::string>& execs);
  bool send(const v1::ToDaemon& message) const;
  bool send_bytes(std::string_view bytes) const;
  std::optional<v1::ToGuest> receive();

  std::string name_;
  std::string exec_id_;
  UniqueFd directory_;
  uid_t owner_ = 0;
  gid_t group_ = 0;

  UniqueFd socket_;
  guestwire::FrameReader reader_{guestwire::kMaxFrameToGuest};
  v1::Phase phase_ = v1::PHASE_FRESH;
  std::string secret_;
  v1::Prepared prepared_;
};

}  // namespace agbox::hostile
