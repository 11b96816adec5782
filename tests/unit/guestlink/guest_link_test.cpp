// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the link against guests that behave, lie, hang and flood.
#include "guestlink/guest_link.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/process_stat.h"
#include "unit/guestlink/link_fixture.h"

namespace agbox::guestlink {
namespace {

using testing::HasSubstr;

std::vector<std::string> entries_of(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename());
  return names;
}

TEST_F(GuestLinkTest, AWholeLife) {
  const fs::path directory = make("s1");
  Expectation expectation = someone();
  expectation.image_user = "node";
  expectation.mounts = {{"/workspace", true}};
  ASSERT_TRUE(link("s1").expect(expectation));
  const std::string secret = new_secret();
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await guest_.connect(directory));
    const auto welcome = co_await guest_.shake_hands(v1::PHASE_FRESH);
    if (!welcome) co_return ADD_FAILURE() << "no welcome";
    EXPECT_EQ(welcome->welcome().uid(), 1000U);
    EXPECT_EQ(welcome->welcome().image_user(), "node");
    EXPECT_TRUE(welcome->welcome().mounts(0).anonymous_volume());
    v1::ToDaemon prepared;
    prepared.mutable_prepared()->add_notes("a note");
    v1::MountSeen* seen = prepared.mutable_prepared()->add_mounts();
    seen->set_target("/workspace");
    seen->set_inode(42);
    co_await guest_.send(prepared);
    co_await guest_.send(ScriptedGuest::execs_known({}));

    const auto hello = co_await link("s1").hello(within(5s));
    if (!hello) co_return ADD_FAILURE() << hello.error().message();
    EXPECT_EQ(hello->build_id, "01ab");
    EXPECT_EQ(hello->phase, GuestPhase::Prepared);
    EXPECT_EQ(hello->process.pid, ::getpid());
    EXPECT_EQ(hello->process.start_time, read_process_stat(::getpid())->start_ticks);
    EXPECT_THAT(hello->notes, testing::ElementsAre("a note"));
    EXPECT_EQ(hello->mounts.at(0).inode, 42U);

    GoOrder go = order(secret);
    go.entrypoint = {"/entry"};
    go.command = {"run", ""};
    EXPECT_TRUE(link("s1").go(go));
    const auto told = co_await guest_.receive();
    if (!told) co_return ADD_FAILURE() << "no go";
    EXPECT_EQ(told->go().secret(), secret);
    EXPECT_THAT(told->go().command(), testing::ElementsAre("run", ""));
    v1::ToDaemon passed;
    passed.mutable_entrypoint_passed();
    co_await guest_.send(passed);
    const auto outcome = co_await link("s1").entrypoint(within(5s));
    EXPECT_TRUE(outcome && !outcome->failure);

    EXPECT_TRUE(link("s1").stop());
    EXPECT_TRUE((co_await guest_.receive())->has_stop());
  }());
  EXPECT_EQ(connected_["s1"], 1);
  link("s1").close();
  EXPECT_TRUE(LinkDirectory::remove(directory));
  EXPECT_FALSE(fs::exists(directory));
}

TEST_F(GuestLinkTest, ListensOnlyWhileNobodyIsConnected) {
  const fs::path directory = make("s1");
  EXPECT_FALSE(fs::exists(directory / "guest.sock"));
  ASSERT_TRUE(link("s1").expect(someone()));
  EXPECT_TRUE(fs::exists(directory / "guest.sock"));
  EXPECT_THAT(entries_of(directory), testing::ElementsAre("guest.sock"));
  EXPECT_THAT(entries_of(root()), testing::ElementsAre(directory.filename())) << "no other name";
  run(come_in(directory));
  EXPECT_THAT(entries_of(directory), testing::IsEmpty());
}

// A container sees everything in the directory that it has mounted.
TEST_F(GuestLinkTest, ASocketThatDoesNotListenYetIsOutsideOfTheDirectory) {
  const fs::path directory = make("s1");
  const fs::path draft = directory.string() + ".new";
  // What a daemon left that was killed between both.
  std::ofstream(draft) << "";
  ASSERT_TRUE(LinkDirectory::list(root()).value() == std::vector{directory});
  ASSERT_TRUE(link("s1").expect(someone()));
  EXPECT_FALSE(fs::exists(draft));
  std::ofstream(draft) << "";
  link("s1").close();
  EXPECT_FALSE(fs::exists(draft));
  std::ofstream(draft) << "";
  EXPECT_TRUE(LinkDirectory::remove(directory));
  EXPECT_THAT(entries_of(root()), testing::IsEmpty());
}

TEST_F(GuestLinkTest, TheDirectoryAndTheSocketAreTheUsersAlone) {
  const fs::path directory = make(std::string(200, 'x'));
  ASSERT_TRUE(link(std::string(200, 'x')).expect(someone()));
  struct stat status{};
  ASSERT_EQ(::stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat((directory / "guest.sock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(directory.filename().string().size(), 16U);
}

TEST_F(GuestLinkTest, AfterGoAReconnectMustProveTheSecret) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  const std::string secret = new_secret();
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    EXPECT_TRUE(link("s1").go(order(secret)));
    EXPECT_TRUE(co_await guest_.receive());
    guest_.close();
    while (lost_["s1"] == 0) co_await asio::post(io_, asio::use_awaitable);
    EXPECT_FALSE(co_await link("s1").hello(within(20ms)));

    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_PASSED)) << "without a proof";
    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_PASSED, new_secret()))
        << "wrong proof";
    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_PASSED, secret));
    const auto back = co_await link("s1").hello(within(5s));
    EXPECT_TRUE(back && back->phase == GuestPhase::Passed);
    const auto outcome = co_await link("s1").entrypoint(within(5s));
    EXPECT_TRUE(outcome && !outcome->failure) << "the hello told it";
  }());
  EXPECT_EQ(connected_["s1"], 2);
}

TEST_F(GuestLinkTest, AGoThatTheGuestHasLostIsSentAgain) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  const std::string secret = new_secret();
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    EXPECT_TRUE(link("s1").go(order(secret)));
    co_await leave(directory);  // without having read it

    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_FRESH)) << "of another start";
    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_PASSED)) << "passed without a secret";
    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_PREPARED));
    const auto again = co_await guest_.receive();
    if (!again) co_return ADD_FAILURE() << "no go";
    EXPECT_EQ(again->go().secret(), secret);
    v1::ToDaemon passed;
    passed.mutable_entrypoint_passed();
    co_await guest_.send(passed);
    EXPECT_TRUE(co_await link("s1").entrypoint(within(5s)));

    co_await leave(directory);
    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_PREPARED)) << "it had its secret";
  }());
}

TEST_F(GuestLinkTest, AGuestThatHasItsGoIsNotSentAnother) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  const std::string secret = new_secret();
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    EXPECT_TRUE(link("s1").go(order(secret)));
    EXPECT_TRUE(co_await guest_.receive());
    co_await leave(directory);

    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_ENTRYPOINT, secret));
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
    EXPECT_TRUE(link("s1").stop());
    const auto next = co_await guest_.receive();
    EXPECT_TRUE(next && next->has_stop());
  }());
}

TEST_F(GuestLinkTest, AFirstConnectionMustBeOfAFreshGuest) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_PASSED)) << "of another start";
    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_FRESH, new_secret()))
        << "has a secret";
    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_FRESH));
  }());
}

TEST_F(GuestLinkTest, ARestartedDaemonAdoptsWhatItStored) {
  const fs::path directory = make("s1");
  const DirectoryIdentity identity = link("s1").directory().identity();
  const std::string secret = new_secret();
  stop_daemon();
  ASSERT_TRUE(adopt("s1", identity));
  ASSERT_TRUE(link("s1").expect(with_secret(secret)));
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await guest_.arrive(directory)) << "a fresh guest is not the one we know";
    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_FAILED, secret));
    const auto outcome = co_await link("s1").entrypoint(within(5s));
    EXPECT_TRUE(outcome && outcome->failure);
  }());
}

TEST_F(GuestLinkTest, AnotherDirectoryIsNotAdopted) {
  make("s1");
  const DirectoryIdentity identity = link("s1").directory().identity();
  const auto other = adopt("s1", {identity.device, identity.inode + 1});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("create it again"));
  EXPECT_EQ(adopt("never made", identity).error().kind(), GuestErrorKind::Refused);
}

TEST_F(GuestLinkTest, ADirectoryThatCannotBeReachedMayComeBack) {
  const fs::path directory = make("s1");
  const DirectoryIdentity identity = link("s1").directory().identity();
  fs::rename(state_root_ / "links", state_root_ / "aside");
  EXPECT_EQ(adopt("s1", identity).error().kind(), GuestErrorKind::Unavailable);
  fs::rename(state_root_ / "aside", state_root_ / "links");
  EXPECT_TRUE(adopt("s1", identity));
  fs::remove_all(directory);
  fs::create_symlink(state_root_, directory);
  EXPECT_EQ(adopt("s1", identity).error().kind(), GuestErrorKind::Refused);
}

TEST_F(GuestLinkTest, AnotherProcessIsRefused) {
  const fs::path directory = make("s1");
  Expectation expectation = someone();
  expectation.process = {::getpid(), read_process_stat(::getpid())->start_ticks + 1};
  ASSERT_TRUE(link("s1").expect(expectation));
  run([&]() -> awaitable<void> { EXPECT_FALSE(co_await guest_.arrive(directory)); }());
  expectation.process.start_time -= 1;
  ASSERT_TRUE(link("s1").expect(expectation));
  run([&]() -> awaitable<void> { EXPECT_TRUE(co_await guest_.arrive(directory)); }());
}

// A connection of another process, from a child of this one.
class OtherProcess {
 public:
  // Makes so many connections, and keeps them until this is destroyed.
  OtherProcess(const fs::path& directory, int connections) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reports_ = UniqueFd(ends[0]);
    UniqueFd reports(ends[1]);
    const std::string path = directory / guestwire::kSocketName;
    child_ = ::fork();
    if (child_ != 0) return;
    // Only what is safe in a child of a process with threads.
    for (int made = 0; made < connections; ++made) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      path.copy(address.sun_path, sizeof address.sun_path - 1);
      const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
      // sockaddr is the generic address type of the C API.
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) break;
      if (::write(reports.get(), "", 1) != 1) break;
    }
    ::pause();
  }
  OtherProcess(const OtherProcess&) = delete;
  ~OtherProcess() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  pid_t pid() const { return child_; }
  // Returns when the next connection is made.
  void wait_for_connection() const {
    char report = 0;
    ASSERT_EQ(::read(reports_.get(), &report, 1), 1);
  }

 private:
  pid_t child_ = 0;
  UniqueFd reports_;
};

TEST_F(GuestLinkTest, ACrowdOfOtherProcessesTakesNoPlaceOfAGuestThatIsKnown) {
  limits_.unproven_connections = 1;
  const std::string secret = new_secret();
  const fs::path directory = make("s1");
  Expectation expectation = with_secret(secret);
  expectation.process = {::getpid(), start_time_of(::getpid())};
  ASSERT_TRUE(link("s1").expect(expectation));
  constexpr int kCrowd = 200;
  const OtherProcess crowd(directory, kCrowd);
  for (int i = 0; i < kCrowd; ++i) crowd.wait_for_connection();
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_PASSED, secret));
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
  }());
}

// The control of the test before.
TEST_F(GuestLinkTest, ACrowdTakesThePlacesOfAGuestThatIsNotKnown) {
  limits_.unproven_connections = 1;
  const std::string secret = new_secret();
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(with_secret(secret)));
  const OtherProcess crowd(directory, 1);
  crowd.wait_for_connection();
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await guest_.arrive(directory, v1::PHASE_PASSED, secret));
  }());
}

// Its socket may be in the hands of any process that runs next to the guest.
TEST_F(GuestLinkTest, NextToOtherProcessesTheConnectionOfAnEndedOneIsRefused) {
  const fs::path directory = make("s1");
  Expectation expectation = someone();
  expectation.engine_pid = ::getpid();
  expectation.started_by = start_time_now();
  ASSERT_TRUE(link("s1").expect(expectation));
  ASSERT_TRUE(guest_.connect_by_ended_process(directory));
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await guest_.shake_hands(v1::PHASE_FRESH));
    EXPECT_TRUE(co_await guest_.arrive(directory));
  }());
}

// The guest has ended, and so many processes were created that one of them got its pid.
TEST_F(GuestLinkTest, NextToOtherProcessesOneThatBeganLaterIsRefused) {
  const fs::path directory = make("s1");
  Expectation expectation = someone();
  expectation.engine_pid = ::getpid();
  expectation.started_by = start_time_of(::getpid()) - 1;
  ASSERT_TRUE(link("s1").expect(expectation));
  run([&]() -> awaitable<void> { EXPECT_FALSE(co_await guest_.arrive(directory)); }());
  expectation.started_by += 1;
  ASSERT_TRUE(link("s1").expect(expectation));
  run([&]() -> awaitable<void> { EXPECT_TRUE(co_await guest_.arrive(directory)); }());
}

// Inside of its container it can be any: processes are created until one has it.
TEST(PeerTest, ItsPidInsideOfItsContainerIsNotTheEngines) {
  const int own_users = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
  const auto child = static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_NEWPID | own_users | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(child, 1);
  EXPECT_TRUE(may_have_pid_outside(child, child));
  EXPECT_FALSE(may_have_pid_outside(child, 1)) << "which it has inside";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(may_have_pid_outside(child, 1)) << "it has ended";
}

TEST_F(GuestLinkTest, OnlyTheProcessWithItsPidAndItsStartIsAlive) {
  const PeerProcess self{::getpid(), start_time_of(::getpid())};
  EXPECT_EQ(if_alive(self), self);
  EXPECT_EQ(if_alive({self.pid, self.start_time + 1}), PeerProcess{}) << "its pid was used before";
  EXPECT_EQ(if_alive({self.pid, 0}), PeerProcess{}) << "may be any process with this pid";
  pid_t ended = 0;
  {
    const OtherProcess other(state_root_, 0);
    ended = other.pid();
  }
  EXPECT_EQ(if_alive({ended, self.start_time}), PeerProcess{});
  EXPECT_EQ(if_alive({}), PeerProcess{});
}

TEST_F(GuestLinkTest, AnotherUserIsRefused) {
  limits_.guest_uid = ::geteuid() + 1;
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> { EXPECT_FALSE(co_await guest_.arrive(directory)); }());
}

TEST_F(GuestLinkTest, AnotherProtocolIsRefusedAndNamed) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await guest_.connect(directory));
    v1::ToDaemon hello = ScriptedGuest::hello(v1::PHASE_FRESH, false);
    hello.mutable_hello()->set_protocol_min(7);
    hello.mutable_hello()->set_protocol_max(9);
    co_await guest_.send(hello);
    EXPECT_FALSE(co_await guest_.receive());
    const auto not_connected = co_await link("s1").hello(within(20ms));
    EXPECT_THAT(not_connected.error().message(), HasSubstr("protocol 7 to 9"));
  }());
}

// What a hostile process may say before it has proven anything.
TEST_F(GuestLinkTest, NonsenseBeforeTheProofIsCutOffAndTheGuestStillGetsIn) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  v1::ToDaemon pong;
  pong.mutable_pong()->set_id(1);
  v1::ToDaemon no_phase = ScriptedGuest::hello(v1::PHASE_UNSPECIFIED, false);
  const std::string long_frame =
      guestwire::frame(std::string(guestwire::kMaxUnprovenFrame + 1, 'x'));
  const std::vector<std::string> openings = {std::string(4, '\0'),
                                             std::string(4, '\xFF'),
                                             guestwire::frame(std::string_view("\xFF\xFF")),
                                             guestwire::frame(pong),
                                             guestwire::frame(no_phase),
                                             long_frame,
                                             guestwire::frame(std::string_view("\x82\x02\x00", 3))};
  run([&]() -> awaitable<void> {
    for (std::size_t i = 0; i < openings.size(); ++i) {
      EXPECT_TRUE(co_await guest_.connect(directory));
      co_await guest_.send_bytes(openings[i]);
      EXPECT_FALSE(co_await guest_.receive()) << "opening " << i;
    }
    EXPECT_TRUE(co_await guest_.arrive(directory));
  }());
}

TEST_F(GuestLinkTest, ASilentConnectionIsCutOffAndHoldsNobodyUp) {
  limits_.handshake = 1s;  // the guest itself has to make it, too
  const fs::path directory = make_and_expect_someone("s1");
  run([&]() -> awaitable<void> {
    ScriptedGuest silent(io_.get_executor());
    EXPECT_TRUE(co_await silent.connect(directory));
    EXPECT_FALSE(co_await silent.receive());
    EXPECT_TRUE(co_await guest_.arrive(directory));
  }());
}

TEST_F(GuestLinkTest, UnprovenConnectionsAreFewAndEndWhenTheGuestIsThere) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    const auto crowd = co_await connect_many(7, directory);
    EXPECT_TRUE(co_await guest_.arrive(directory));
    for (const auto& one : crowd) EXPECT_FALSE(co_await one->receive());
  }());
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    const auto crowd = co_await connect_many(8, directory);
    EXPECT_TRUE(co_await guest_.connect(directory));
    EXPECT_FALSE(co_await guest_.receive()) << "the ninth";
  }());
}

// What a guest that was taken in may not say, whenever it says it.
TEST_F(GuestLinkTest, FramesOutOfPlaceEndTheConnectionAndTheGuestMayComeBack) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  v1::ToDaemon pong;
  pong.mutable_pong()->set_id(99);
  v1::ToDaemon passed;
  passed.mutable_entrypoint_passed();
  v1::ToDaemon failed;
  failed.mutable_entrypoint_failed()->set_cause(v1::EntrypointFailed::CAUSE_EXITED);
  v1::ToDaemon prepared;
  prepared.mutable_prepared();
  v1::ToDaemon proof;
  proof.mutable_proof();
  const std::vector<v1::ToDaemon> lies = {pong,
                                          passed,
                                          failed,
                                          prepared,
                                          proof,
                                          ScriptedGuest::hello(v1::PHASE_FRESH, false),
                                          ScriptedGuest::execs_known({})};
  run([&]() -> awaitable<void> {
    for (std::size_t i = 0; i < lies.size(); ++i) {
      bool in = false;
      while (!in) in = co_await guest_.arrive(directory);  // listening again takes its penalty
      EXPECT_TRUE(co_await link("s1").hello(within(5s)));
      co_await guest_.send(lies[i]);
      EXPECT_FALSE(co_await guest_.receive()) << "lie " << i;
    }
  }());
  EXPECT_EQ(lost_["s1"], static_cast<int>(lies.size()));
}

TEST_F(GuestLinkTest, TheEntrypointsEndIsToldOnce) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    EXPECT_TRUE(link("s1").go(order(new_secret())));
    EXPECT_TRUE(co_await guest_.receive());
    v1::ToDaemon failed;
    v1::EntrypointFailed* failure = failed.mutable_entrypoint_failed();
    failure->set_cause(v1::EntrypointFailed::CAUSE_EXITED);
    failure->set_code(7);
    failure->set_output_tail("bad \xFF\x1B[31m config\n");
    co_await guest_.send(failed);
    const auto outcome = co_await link("s1").entrypoint(within(5s));
    if (!outcome || !outcome->failure) co_return ADD_FAILURE();
    EXPECT_EQ(outcome->failure->sentence(),
              "the image's entrypoint ended with exit code 7 before it ran its arguments; its last "
              "output: bad ??[31m config; create with bypass_entrypoint (--no-entrypoint) to go "
              "without it");
    co_await guest_.send(failed);
    EXPECT_FALSE(co_await guest_.receive());
  }());
}

TEST_F(GuestLinkTest, AnEntrypointsEndInAHelloIsReportedBeforeTheGuestHasPrepared) {
  const fs::path directory = make("s1");
  const std::string secret = new_secret();
  ASSERT_TRUE(link("s1").expect(with_secret(secret)));
  run([&]() -> awaitable<void> {
    TaskGroup tasks(io_.get_executor());
    const auto wait = [&]() -> awaitable<void> {
      EXPECT_TRUE(co_await link("s1").entrypoint(within(1h)));
    };
    tasks.spawn("entrypoint", wait());
    EXPECT_TRUE(co_await guest_.connect(directory));
    EXPECT_TRUE(co_await guest_.shake_hands(v1::PHASE_PASSED, secret));
    co_await tasks.join();
  }());
}

TEST_F(GuestLinkTest, APingHasATimeLimit) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await link("s1").ping(1s)) << "nobody is there";
    co_await come_in(directory);
    const auto late = co_await link("s1").ping(20ms);
    EXPECT_FALSE(late);
    EXPECT_THAT(late.error().message(), HasSubstr("within 20 ms"));
    const auto answer = [&]() -> awaitable<void> {
      for (int i = 0; i < 2; ++i) {  // the late one is answered too, and that is no offence
        const auto ping = co_await guest_.receive();
        v1::ToDaemon pong;
        pong.mutable_pong()->set_id(ping->ping().id());
        co_await guest_.send(pong);
      }
    };
    TaskGroup tasks(io_.get_executor());
    tasks.spawn("answer", answer());
    EXPECT_TRUE(co_await link("s1").ping(5s));
    co_await tasks.join();
  }());
}

TEST_F(GuestLinkTest, ACallerLearnsWhetherASilentGuestIsConnected) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    const auto before = co_await link("s1").entrypoint(within(0s));
    EXPECT_THAT(before.error().message(), HasSubstr("it has not connected yet"));
    co_await come_in(directory);
    const auto after = co_await link("s1").entrypoint(within(0s));
    EXPECT_THAT(after.error().message(), HasSubstr("it is connected, but silent"));
  }());
}

v1::ToDaemon tried(std::uint64_t id, v1::ConnectionTried::Outcome outcome) {
  v1::ToDaemon message;
  message.mutable_connection_tried()->set_id(id);
  message.mutable_connection_tried()->set_outcome(outcome);
  return message;
}

TEST_F(GuestLinkTest, AGuestTriesAConnectionBeforeItsGoAndTellsWhatCameOfIt) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  const ProbeTarget target{.address = {0x0A630001}, .port = 4242, .limit = 3s};
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await link("s1").probe(target)) << "nobody is there";
    co_await come_in(directory);
    const auto answer = [&]() -> awaitable<void> {
      for (const auto outcome :
           {v1::ConnectionTried::OUTCOME_REFUSED, v1::ConnectionTried::OUTCOME_CONNECTED}) {
        const auto order = co_await guest_.receive();
        EXPECT_EQ(order->try_connection().address(), 0x0A630001U);
        EXPECT_EQ(order->try_connection().port(), 4242U);
        EXPECT_EQ(order->try_connection().limit_ms(), 3000U);
        co_await guest_.send(tried(order->try_connection().id(), outcome));
      }
    };
    TaskGroup tasks(io_.get_executor());
    tasks.spawn("answer", answer());
    const auto refused = co_await link("s1").probe(target);
    EXPECT_EQ(refused.value().outcome, ProbeReport::Outcome::Refused);
    const auto connected = co_await link("s1").probe(target);
    EXPECT_EQ(connected.value().outcome, ProbeReport::Outcome::Connected);
    co_await tasks.join();
  }());
}

TEST_F(GuestLinkTest, AGuestThatGoesWhileItTriesAConnectionHasToldNothing) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    const auto leave = [&]() -> awaitable<void> {
      EXPECT_TRUE(co_await guest_.receive());
      guest_.close();
    };
    TaskGroup tasks(io_.get_executor());
    tasks.spawn("leave", leave());
    const auto report = co_await link("s1").probe({.address = {0x0A630001}, .port = 1});
    EXPECT_FALSE(report);
    EXPECT_THAT(report.error().message(), HasSubstr("its connection ended"));
    co_await tasks.join();
  }());
}

TEST_F(GuestLinkTest, AConnectionThatNobodyAskedForIsAnOffence) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    co_await guest_.send(tried(7, v1::ConnectionTried::OUTCOME_REFUSED));
    EXPECT_FALSE(co_await guest_.receive());
  }());
}

TEST_F(GuestLinkTest, AGuestThatFailedToPrepareTakesNoGo) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await guest_.connect(directory));
    EXPECT_TRUE(co_await guest_.shake_hands(v1::PHASE_FRESH));
    v1::ToDaemon prepared;
    prepared.mutable_prepared()->set_failure("no such user");
    co_await guest_.send(prepared);
    co_await guest_.send(ScriptedGuest::execs_known({}));
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
  }());
  const auto refused = link("s1").go(order(new_secret()));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("no such user"));
}

TEST_F(GuestLinkTest, AnOversizedCommandIsRefusedBeforeItIsSent) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run(come_in(directory));
  GoOrder go = order(new_secret());
  go.command = {std::string(std::size_t{1} << 20, 'x')};
  EXPECT_THAT(link("s1").go(go).error().message(), HasSubstr("1 MiB"));
}

TEST_F(GuestLinkTest, ANewContainerStartForgetsTheLastOne) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(with_secret(new_secret())));
  ASSERT_TRUE(link("s1").expect(someone()));
  run(come_in(directory));
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(co_await guest_.receive());
    EXPECT_FALSE(co_await link("s1").hello(within(20ms)));
    EXPECT_TRUE(co_await guest_.arrive(directory));
  }());
}

TEST_F(GuestLinkTest, WhoeverWaitsForALinkThatIsClosedIsTold) {
  make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    TaskGroup tasks(io_.get_executor());
    int told = 0;
    const auto wait_for_hello = [&]() -> awaitable<void> {
      told += !co_await link("s1").hello(within(20s));
    };
    const auto wait_for_entrypoint = [&]() -> awaitable<void> {
      told += !co_await link("s1").entrypoint(within(20s));
    };
    tasks.spawn("hello", wait_for_hello());
    tasks.spawn("entrypoint", wait_for_entrypoint());
    co_await asio::post(io_, asio::use_awaitable);
    link("s1").close();
    co_await tasks.join();
    EXPECT_EQ(told, 2);
  }());
  EXPECT_FALSE(link("s1").stop());
}

TEST_F(GuestLinkTest, AClosedLinkThatJustBeganToListenDoesNoHarm) {
  make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  link("s1").close();
  link("s1").close();
}

TEST_F(GuestLinkTest, AGuestThatDoesNotReadIsCutOffInTheEnd) {
  const fs::path directory = make("s1");
  ASSERT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    GoOrder go = order(new_secret());
    go.command = {std::string(1000000, 'x')};
    int sent = 0;
    while (link("s1").go(go) && sent < 100) ++sent;
    EXPECT_LT(sent, 40);
  }());
}

TEST_F(GuestLinkTest, AShutdownDoesNotWaitUntilAGuestMayComeBack) {
  limits_.penalty = 1h;
  const fs::path directory = make_and_expect_someone("s1");
  run([&]() -> awaitable<void> {
    co_await come_in(directory);
    co_await guest_.send_bytes(std::string(4, '\0'));
    EXPECT_FALSE(co_await guest_.receive());
    while (lost_["s1"] == 0) co_await asio::post(io_, asio::use_awaitable);
  }());
  stop_daemon();
}

TEST_F(GuestLinkTest, AShutdownDoesNotWaitUntilTheNextConnectionMayCome) {
  limits_.connections_at_once = 1;
  limits_.between_connections = 1h;
  const fs::path directory = make_and_expect_someone("s1");
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await guest_.connect(directory));
    co_await guest_.send_bytes(std::string(4, '\0'));
    EXPECT_FALSE(co_await guest_.receive());
  }());
  stop_daemon();
}

// The log as it is written while this lives.
class CapturedLog {
 public:
  CapturedLog() : file_(::memfd_create("log", MFD_CLOEXEC)) {
    set_log_level(LogLevel::Warn);
    set_log_fd(file_.get());
  }
  ~CapturedLog() {
    set_log_fd(STDERR_FILENO);
    set_log_level(LogLevel::Error);
  }
  std::vector<std::string> lines() const {
    std::ifstream text("/proc/self/fd/" + std::to_string(file_.get()));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

 private:
  UniqueFd file_;
};

// Whoever runs in the sandbox, while the guest is away.
TEST_F(GuestLinkTest, ManyFalseConnectionsAreTakenAFewAtATimeAndLoggedAsOne) {
  limits_.between_connections = 5ms;
  limits_.handshakes_at_once = 4;
  const fs::path directory = make_and_expect_someone("s1");
  const CapturedLog log;
  run([&]() -> awaitable<void> {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 40; ++i) {
      EXPECT_TRUE(co_await guest_.connect(directory));
      co_await guest_.send_bytes(std::string(4, '\0'));
      EXPECT_FALSE(co_await guest_.receive());
    }
    EXPECT_GE(std::chrono::steady_clock::now() - start, 9 * 5ms);
    EXPECT_TRUE(co_await guest_.arrive(directory)) << "the guest still gets in";
  }());
  EXPECT_THAT(log.lines(), testing::ElementsAre(HasSubstr("is not authenticated as the guest's")));
}

TEST_F(GuestLinkTest, AGuestThatComesAndGoesIsTakenInOnceInAWhileAndLoggedAsOne) {
  limits_.penalty = 50ms;
  const fs::path directory = make_and_expect_someone("s1");
  const CapturedLog log;
  run([&]() -> awaitable<void> {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i) {
      while (!co_await guest_.arrive(directory)) {
      }
      EXPECT_TRUE(co_await link("s1").hello(within(5s)));
      guest_.close();
      while (lost_["s1"] <= i) co_await asio::post(io_, asio::use_awaitable);
    }
    EXPECT_GE(std::chrono::steady_clock::now() - start, 4 * 50ms);
  }());
  EXPECT_THAT(log.lines(), testing::ElementsAre(HasSubstr("the guest's connection ended")));
}

}  // namespace
}  // namespace agbox::guestlink
