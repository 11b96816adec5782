// SPDX-License-Identifier: Apache-2.0
#include "hostile_guest/liar.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "guest/connection_probes.h"
#include "guest/preparation.h"
#include "guest/privilege.h"
#include "guestwire/place.h"
#include "guestwire/proof.h"

namespace agbox::hostile {
namespace {

// Between two attempts to connect without a listener: only the daemon decides when it listens
// again.
constexpr useconds_t kPause = 2000;
// More than wait in the queue of the socket, so that those which the daemon accepts are still open.
constexpr std::size_t kCrowd = 2000;

v1::ToDaemon exec_ended(const std::string& exec_id, int code) {
  v1::ToDaemon message;
  v1::ExecEnded* end = message.mutable_exec_ended();
  end->set_exec_id(exec_id);
  end->set_how(v1::ExecEnded::HOW_EXITED);
  end->set_code(code);
  end->set_detail("it is over, believe me");
  return message;
}

v1::ToDaemon execs_known(const std::vector<std::string>& execs, bool more = false) {
  v1::ToDaemon message;
  message.mutable_execs_known()->set_more(more);
  for (const std::string& exec_id : execs) message.mutable_execs_known()->add_exec_ids(exec_id);
  return message;
}

v1::ToDaemon pong() {
  v1::ToDaemon message;
  message.mutable_pong()->set_id(4711);
  return message;
}

// Honestly: a guest that only says that it was refused is found out, because nobody has counted it.
v1::ToDaemon try_connection(const v1::TryConnection& order) {
  v1::ToDaemon answer;
  guest::ConnectionProbes probes(
      [&](const v1::ConnectionTried& tried) { *answer.mutable_connection_tried() = tried; });
  probes.begin(order);
  while (!answer.has_connection_tried()) {
    guest::Watches watches;
    probes.collect(watches);
    guest::wait_and_serve(watches);
    probes.end_overdue();
  }
  return answer;
}

}  // namespace

Liar::Liar(const std::string& words)
    : name_(words.substr(0, words.find(' '))),
      exec_id_(words.substr(std::min(words.size(), name_.size() + 1))),
      directory_(::open(guestwire::kLinkDirectoryInside, O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  struct stat status{};
  AGBOX_CHECK(directory_ && ::fstat(directory_.get(), &status) == 0,
              "the link's directory is there");
  owner_ = status.st_uid;
  group_ = status.st_gid;
}

void Liar::live() {
  ::signal(SIGPIPE, SIG_IGN);
  while (phase_ != v1::PHASE_PASSED) behave_until_go();
  while (true) lie();
}

void Liar::behave_until_go() {
  if (!connect() || !come_in({})) return;
  while (const auto message = receive()) {
    v1::ToDaemon answer;
    if (message->has_ping()) answer.mutable_pong()->set_id(message->ping().id());
    if (message->has_try_connection()) answer = try_connection(message->try_connection());
    if (message->has_go()) {
      secret_ = message->go().secret();
      phase_ = v1::PHASE_PASSED;
      answer.mutable_entrypoint_passed();
    }
    if (answer.body_case() != v1::ToDaemon::BODY_NOT_SET) send(answer);
    if (message->has_go()) return;
  }
}

void Liar::lie() {
  using Lie = void (Liar::*)();
  static constexpr std::array<std::pair<std::string_view, Lie>, 9> kLies = {{
      {"ends-others", &Liar::end_execs_of_others},
      {"ends-running", &Liar::end_what_runs},
      {"floods", &Liar::flood},
      {"too-long", &Liar::send_too_long_frames},
      {"lists-without-end", &Liar::list_execs_without_end},
      {"no-secret", &Liar::come_without_the_secret},
      {"comes-and-goes", &Liar::come_and_go},
      {"crowds", &Liar::come_in_crowds},
      {"deaf", &Liar::never_read},
  }};
  for (const auto& [name, tell] : kLies) {
    if (name == name_) return (this->*tell)();
  }
  AGBOX_CHECK(false, "/lie names a lie");
}

// First without ever having been given it, then as one that it came with.
void Liar::end_execs_of_others() {
  send(exec_ended(exec_id_, 66));
  while (receive()) {
  }
  while (!connect() || !come_in({exec_id_})) {
  }
  v1::ToDaemon truncated;
  truncated.mutable_exec_truncated()->set_exec_id(exec_id_);
  send(truncated);
  send(exec_ended(exec_id_, 66));
  send(exec_ended(exec_id_, 66));
  while (receive()) {
  }
  while (!connect() || !come_in({})) {
  }
}

// Takes an order, throws its files away, runs nothing, and tells two ends.
void Liar::end_what_runs() {
  std::optional<v1::ToGuest> order;
  while ((order = receive()) && !order->has_start_exec()) {
  }
  if (order) {
    const std::string exec_id = order->start_exec().exec_id();
    send(exec_ended(exec_id, 42));
    send(exec_ended(exec_id, 43));
    while (receive()) {
    }
  }
  while (!connect() || !come_in({})) {
  }
}

void Liar::flood() {
  std::string frames;
  for (int i = 0; i < 1000; ++i) frames += guestwire::frame(pong());
  for (int i = 0; i < 1000 && send_bytes(frames); ++i) {
  }
  while (!connect() || !come_in({})) {
  }
}

void Liar::send_too_long_frames() {
  send_bytes(std::string_view("\xFF\xFF\xFF\x7F", 4));
  const std::string megabyte(1U << 20, 'x');
  while (send_bytes(megabyte)) {
  }
  while (!connect() || !come_in({})) {
  }
}

void Liar::list_execs_without_end() {
  socket_.reset();
  while (!connect() || !is_taken_in(secret_)) {
  }
  v1::ToDaemon prepared;
  *prepared.mutable_prepared() = prepared_;
  send(prepared);
  while (send(execs_known({}, true))) {
  }
}

void Liar::come_without_the_secret() {
  socket_.reset();
  while (!connect()) {
  }
  is_taken_in(guestwire::random_bytes(guestwire::kSecretSize));
}

void Liar::come_and_go() {
  socket_.reset();
  while (!connect() || !come_in({})) {
  }
}

// Connections that say nothing, as many as the daemon takes, and their places taken again at once.
void Liar::come_in_crowds() {
  socket_.reset();
  std::deque<UniqueFd> crowd;
  while (true) {
    UniqueFd one = open_connection();
    if (!one) {
      ::usleep(kPause);
      continue;
    }
    crowd.push_back(std::move(one));
    if (crowd.size() > kCrowd) crowd.pop_front();
  }
}

void Liar::never_read() {
  while (true) ::pause();
}

UniqueFd Liar::open_connection() const {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path =
      "/proc/self/fd/" + std::to_string(directory_.get()) + "/" + guestwire::kSocketName;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const guest::FileAccessAs owner(owner_, group_);
  // sockaddr is the base class of the C interface.
  const auto* general = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd.get(), general, sizeof address) != 0) return {};
  return fd;
}

bool Liar::connect() {
  socket_ = open_connection();
  reader_ = guestwire::FrameReader(guestwire::kMaxFrameToGuest);
  if (!socket_) ::usleep(kPause);
  return static_cast<bool>(socket_);
}

bool Liar::is_taken_in(std::string_view secret) {
  v1::ToDaemon message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_protocol_min(guestwire::kProtocolMin);
  hello->set_protocol_max(guestwire::kProtocolMax);
  hello->set_phase(phase_);
  hello->set_has_secret(!secret.empty());
  if (!send(message)) return false;
  const auto challenge = receive();
  if (!challenge || !challenge->has_challenge()) return false;
  message.mutable_proof();
  if (!secret.empty()) {
    message.mutable_proof()->set_mac(guestwire::prove(secret, challenge->challenge().nonce()));
  }
  if (!send(message)) return false;
  const auto welcome = receive();
  if (!welcome || !welcome->has_welcome()) return false;
  if (phase_ == v1::PHASE_FRESH) {
    const UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    prepared_ = guest::prepare(root.get(), welcome->welcome()).report;
    phase_ = v1::PHASE_PREPARED;
  }
  return true;
}

bool Liar::come_in(const std::vector<std::string>& execs) {
  if (!is_taken_in(secret_)) return false;
  v1::ToDaemon message;
  *message.mutable_prepared() = prepared_;
  return send(message) && send(execs_known(execs));
}

bool Liar::send(const v1::ToDaemon& message) const {
  return send_bytes(guestwire::frame(message));
}

bool Liar::send_bytes(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<v1::ToGuest> Liar::receive() {
  while (true) {
    if (const auto bytes = reader_.next()) {
      v1::ToGuest message;
      if (!message.ParseFromString(*bytes)) return std::nullopt;
      return message;
    }
    std::array<char, 8192> chunk;
    const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (got <= 0) return std::nullopt;
    reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace agbox::hostile
