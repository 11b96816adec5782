// SPDX-License-Identifier: Apache-2.0
// The language of guest_link_fuzz: a step is one letter, its arguments one character each, 0 to 9
// and : to ? for 0 to 15. Any other byte where a step may begin separates steps, so every input is
// a program, one that was changed a little does nearly the same, and seeds can be written by hand.
//
// Calls of the daemon:
//   M     make the link          A i   adopt its directory; i odd: another identity
//   R     rest                   Z     forget the sandbox
//   E s p expect: secret s (0 none, 1 new, 2 the last one), process p (0 any, 1 ours, 2 another)
//   H d   wait for hello         N d   wait for the entrypoint; d: 0 no deadline, 1 it has passed
//   P d   ping                   T d   probe
//   K n   cancel the nth caller that waits
//   G k   go: 0 the start's secret, 1 another, 2 a short one, 3 with too long a command, 4 with a
//         long one
//   X e k start exec e: k 0 small, 1 large, 2 too long, 3 without a file for stderr
//   C e   cancel exec            F e   forget exec
//   I e d attach a pipe to the input of exec e, and wait for the report; d as of H
//   J e k of exec e: k 0 end of input, 1 resize, 2 signal
//   S     stop                   D     doubt
//   Q a b another daemon, with limits: a bits handshake, preparation passed at once, penalty
//         endless; b bits second connection never accepted, one unproven, other user's guest
//   V v   the next step is done in the handler of the next event v: 0 connected, 1 lost, 2 exec
//         ended, 3 exec truncated
//
// What the guest does, on the connection that is selected:
//   c     connect and select it  s n   select connection n
//   x     close                  w     close for writing
//   q     stop reading, or begin again
//   d n   the next bytes carry n descriptors
//   h p s v hello in phase p, with a secret if s is odd, protocol v: 0 ours, else from the low half
//         of the number to its high half
//   p k   proof: 0 empty, 1 right, 2 a replayed one, 3 the text, 4 a right one cut short, 5 of the
//         last start's secret
//   r k   prepared: bit 0 with a failure, bit 1 with many notes and mounts
//   k e m execs known: exec e, or none for e 15; bit 0 of m: more follow, bit 1: twice, bit 2: many
//   y     entrypoint passed      n c   entrypoint failed with cause c
//   o k   pong: 0 to the last ping, 1 to the number's
//   t k o connection tried: k as for pong, outcome o
//   e e h exec e ended in way h  u e   output of exec e truncated
//   i k o input attached: k as for pong, outcome o
//   b...` these bytes            f...` a frame of these bytes
//   {     hold back what follows }     send what was held back
//   / n   send the first n bytes of it
//
// Values of fields, and how steps are executed:
//   "...` the text               *     double the text
//   #...` the number, big endian
//   ^ n   the next step 2^n times, n at most 11
//   ~     the loop does not run after the next step
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace agbox::guestlink {

enum class EventKind { Connected, Lost, ExecEnded, ExecTruncated };

struct Step {
  char letter = 0;
  std::array<unsigned, 3> arguments{};
  std::string bytes;
  unsigned times = 1;
  bool settles = true;              // the loop runs after it, until it is idle
  std::optional<EventKind> inside;  // the handler of this event, instead of now

  bool is_daemons() const { return letter >= 'A' && letter <= 'Z'; }
};

// 14 and 15 are no valid ids.
inline std::string exec_name(unsigned number) {
  return number < 14 ? "exec-" + std::to_string(number) : "x";
}

class Program {
 public:
  explicit Program(std::string_view text) : rest_(text) {}

  std::vector<Step> steps() {
    std::vector<Step> steps;
    Step step;
    while (!rest_.empty()) {
      const char letter = take();
      if (letter == '~') {
        step.settles = false;
      } else if (letter == '^') {
        step.times = 1U << argument() % 12;
      } else if (letter == 'V') {
        step.inside = static_cast<EventKind>(argument() & 3);
      } else if (is_step(letter)) {
        step.letter = letter;
        for (std::size_t i = 0; i < arity(letter); ++i) step.arguments.at(i) = argument();
        if (takes_bytes(letter)) step.bytes = text();
        steps.push_back(std::exchange(step, {}));
      }
    }
    return steps;
  }

 private:
  static bool is_among(char letter, std::string_view letters) { return letters.contains(letter); }
  static std::size_t arity(char letter) {
    if (is_among(letter, "h")) return 3;
    if (is_among(letter, "EXQIJktei")) return 2;
    return is_among(letter, "AHNPTKGCFsdprnou/") ? 1 : 0;
  }
  static bool takes_bytes(char letter) { return is_among(letter, "bf\"#"); }
  static bool is_step(char letter) {
    return arity(letter) > 0 || takes_bytes(letter) || is_among(letter, "MRZSDcxwqy{}*");
  }

  char take() {
    const char first = rest_.front();
    rest_.remove_prefix(1);
    return first;
  }
  unsigned argument() { return rest_.empty() ? 0 : static_cast<unsigned>(take() - '0') & 15U; }
  std::string text() {
    const std::size_t end = rest_.find('`');
    const std::string bytes(rest_.substr(0, end));
    rest_.remove_prefix(std::min(bytes.size() + 1, rest_.size()));
    return bytes;
  }

  std::string_view rest_;
};

}  // namespace agbox::guestlink
