// SPDX-License-Identifier: Apache-2.0
// Execs over the link: orders with their descriptors, ends, and guests that lie about either.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/kernel_budget.h"
#include "unit/guestlink/link_fixture.h"

namespace agbox::guestlink {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Takes the capabilities away that lift limits of the kernel, and lowers the one on descriptors.
class WithoutPrivilege {
 public:
  WithoutPrivilege() {
    // What is in flight is counted per user: other processes of this program wait.
    EXPECT_EQ(::flock(alone_.get(), LOCK_EX), 0);
    EXPECT_EQ(::syscall(SYS_capget, &header_, before_.data()), 0);
    auto reduced = before_;
    reduced[0].effective &= ~(1U << CAP_SYS_RESOURCE | 1U << CAP_SYS_ADMIN);
    EXPECT_EQ(::syscall(SYS_capset, &header_, reduced.data()), 0);
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit_), 0);
    const rlimit low{256, limit_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  ~WithoutPrivilege() {
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit_), 0);
    EXPECT_EQ(::syscall(SYS_capset, &header_, before_.data()), 0);
  }

 private:
  UniqueFd alone_{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> before_{};
  rlimit limit_{};
};

// Until no user without privilege can send another one.
void fill_with_descriptors(int socket) {
  std::array<char, 1> byte{};
  iovec data{byte.data(), byte.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(100 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(100 * sizeof(int));
  std::array<int, 100> same{};
  same.fill(socket);
  std::memcpy(CMSG_DATA(header), same.data(), sizeof same);
  int sent = 0;
  while (sent < 1000 && ::sendmsg(socket, &message, MSG_DONTWAIT) == 1) ++sent;
  EXPECT_EQ(errno, ETOOMANYREFS) << sent;
}

class ExecsTest : public GuestLinkTest {
 protected:
  // A guest of which only the list of its execs is still to come.
  awaitable<void> come_to_the_list() {
    temp_directory_ = make("s1");
    EXPECT_TRUE(link("s1").expect(with_secret(secret_ = new_secret())));
    EXPECT_TRUE(co_await guest_.connect(temp_directory_));
    EXPECT_TRUE(co_await guest_.shake_hands(v1::PHASE_PASSED, secret_));
    v1::ToDaemon prepared;
    prepared.mutable_prepared();
    co_await guest_.send(prepared);
  }
  // A guest that is connected and was told to go; knows these execs.
  awaitable<void> settle_in(std::vector<std::string> execs = {}) {
    temp_directory_ = make("s1");
    secret_ = new_secret();
    EXPECT_TRUE(link("s1").expect(with_secret(secret_)));
    EXPECT_TRUE(
        co_await guest_.arrive(temp_directory_, v1::PHASE_PASSED, secret_, std::move(execs)));
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
  }
  // After a violation the daemon listens again only after its penalty.
  awaitable<void> come_back(std::vector<std::string> execs = {}) {
    bool in = false;
    while (!in) in = co_await guest_.arrive(temp_directory_, v1::PHASE_PASSED, secret_, execs);
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
  }

  // Each file has a name, to be found again on the other side.
  static UniqueFd file(const std::string& name) {
    UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC));
    ::fcntl(fd.get(), F_SETFL, O_APPEND);
    return fd;
  }
  static std::string name_of(const UniqueFd& fd) {
    const std::string link = fs::read_symlink("/proc/self/fd/" + std::to_string(fd.get()));
    const std::string prefix = "/memfd:";
    return link.substr(prefix.size(), link.find(' ') - prefix.size());
  }
  struct Order : ExecOrder {
    OutputFiles files;
  };
  static Order order_for(const std::string& exec_id, std::size_t size = 0) {
    Order order;
    order.exec_id = exec_id;
    order.command = {"/bin/true", ""};
    if (size > 0) order.environment = {"BIG=" + std::string(size, 'x')};
    order.working_directory = "/workspace";
    order.files.out = file(exec_id + ".out");
    order.files.err = file(exec_id + ".err");
    return order;
  }
  Result<> start_exec(const std::string& id, Order order) {
    return link(id).start_exec(order, std::move(order.files));
  }
  static std::size_t open_descriptors() {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
  }
  static ExecEnd exited(const std::string& exec_id, int code = 0) {
    ExecEnd end;
    end.exec_id = exec_id;
    end.code = code;
    return end;
  }
  // Lets everything happen that can.
  awaitable<void> until(std::function<bool()> done) {
    while (!done()) co_await asio::post(io_, asio::use_awaitable);
  }

  fs::path temp_directory_;
  std::string secret_;
};

TEST_F(ExecsTest, AnExecFromItsOrderToTheWordThatItIsForgotten) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    EXPECT_TRUE(link("s1").is_connected());
    Order order = order_for("exec-1");
    order.environment = {"A=b", "C="};
    order.output_limit_bytes = 7;
    order.files.free_space_reserve_bytes = 8;
    EXPECT_TRUE(start_exec("s1", std::move(order)));
    const auto told = co_await guest_.receive();
    if (!told || !told->has_start_exec()) co_return ADD_FAILURE() << "no order";
    const v1::StartExec& start = told->start_exec();
    EXPECT_EQ(start.exec_id(), "exec-1");
    EXPECT_THAT(start.command(), ElementsAre("/bin/true", ""));
    EXPECT_THAT(start.environment(), ElementsAre("A=b", "C="));
    EXPECT_EQ(start.working_directory(), "/workspace");
    EXPECT_EQ(start.output_limit_bytes(), 7U);
    EXPECT_EQ(start.free_space_reserve_bytes(), 8U);
    EXPECT_THAT(guest_.descriptors, SizeIs(2));
    EXPECT_EQ(name_of(guest_.descriptors.at(0)), "exec-1.out");
    EXPECT_EQ(name_of(guest_.descriptors.at(1)), "exec-1.err");
    EXPECT_NE(::fcntl(guest_.descriptors.at(0).get(), F_GETFL) & O_APPEND, 0);

    EXPECT_TRUE(link("s1").cancel_exec("exec-1", 2s));
    const auto cancel = co_await guest_.receive();
    EXPECT_EQ(cancel->cancel_exec().exec_id(), "exec-1");
    EXPECT_EQ(cancel->cancel_exec().grace_ms(), 2000U);

    co_await guest_.send(ScriptedGuest::exec_truncated("exec-1"));
    v1::ToDaemon ended = ScriptedGuest::exec_ended("exec-1", 3);
    ended.mutable_exec_ended()->set_output_truncated(true);
    ended.mutable_exec_ended()->set_peak_memory_bytes(4096);
    co_await guest_.send(ended);
    co_await until([&] { return !ended_.empty(); });
    EXPECT_THAT(truncated_, ElementsAre("exec-1"));
    ExecEnd end = exited("exec-1", 3);
    end.output_truncated = true;
    end.peak_memory_bytes = 4096;
    EXPECT_THAT(ended_, ElementsAre(end));

    EXPECT_TRUE(link("s1").forget_exec("exec-1"));
    EXPECT_EQ((co_await guest_.receive())->forget_exec().exec_id(), "exec-1");
    EXPECT_FALSE(link("s1").cancel_exec("exec-1", 2s)) << "it is forgotten";
    EXPECT_FALSE(link("s1").forget_exec("exec-1"));
  }());
  EXPECT_EQ(lost_["s1"], 0);
}

TEST_F(ExecsTest, EveryOrderArrivesWithItsOwnFilesHoweverLargeAndHoweverSlowlyItIsRead) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    const std::size_t before = open_descriptors();
    // Together far more than a socket holds: most of it waits in the queue.
    const std::vector<std::size_t> sizes = {4 << 20, 0, 200000, 3, 1 << 20, 65536, 0, 2 << 20};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_TRUE(start_exec("s1", order_for("exec-" + std::to_string(i), sizes[i])));
      EXPECT_TRUE(link("s1").cancel_exec("exec-" + std::to_string(i), 1s));
    }
    EXPECT_GT(open_descriptors(), before) << "what is not sent keeps its files";
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string id = "exec-" + std::to_string(i);
      const auto told = co_await guest_.receive();
      if (!told || !told->has_start_exec()) co_return ADD_FAILURE() << "no order " << i;
      EXPECT_EQ(told->start_exec().exec_id(), id);
      if (sizes[i] > 0) EXPECT_EQ(told->start_exec().environment(0).size(), sizes[i] + 4);
      if (guest_.descriptors.size() < 2) co_return ADD_FAILURE() << "no files with " << i;
      EXPECT_EQ(name_of(guest_.descriptors[0]), id + ".out");
      EXPECT_EQ(name_of(guest_.descriptors[1]), id + ".err");
      guest_.descriptors.erase(guest_.descriptors.begin(), guest_.descriptors.begin() + 2);
      EXPECT_EQ((co_await guest_.receive())->cancel_exec().exec_id(), id);
    }
    EXPECT_THAT(guest_.descriptors, IsEmpty());
    EXPECT_EQ(open_descriptors(), before);
  }());
}

TEST_F(ExecsTest, ManySmallOrdersInARow) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(start_exec("s1", order_for("exec-" + std::to_string(i))));
    }
    for (int i = 0; i < 1000; ++i) {
      const std::string id = "exec-" + std::to_string(i);
      EXPECT_EQ((co_await guest_.receive())->start_exec().exec_id(), id);
      EXPECT_EQ(name_of(guest_.descriptors.at(0)), id + ".out");
      EXPECT_EQ(name_of(guest_.descriptors.at(1)), id + ".err");
      guest_.descriptors.clear();
      co_await guest_.send(ScriptedGuest::exec_ended(id, i % 256));
    }
    co_await until([&] { return ended_.size() == 1000; });
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(ended_[static_cast<std::size_t>(i)], exited("exec-" + std::to_string(i), i % 256));
    }
  }());
}

TEST_F(ExecsTest, AGuestThatNeverReadsIsGivenNoMoreOrdersAndTakesThemUpLater) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    const std::size_t before = open_descriptors();
    int given = 0;
    Result<> answer;
    while (given < 100) {
      answer = start_exec("s1", order_for("exec-" + std::to_string(given), 4 << 20));
      if (!answer) break;
      ++given;
    }
    EXPECT_GE(given, 4);
    EXPECT_LE(given, 6);
    EXPECT_EQ(answer.error().reason(), reason::kResourceExhausted);
    EXPECT_THAT(answer.error().message(), HasSubstr("does not read its orders"));
    EXPECT_FALSE(link("s1").takes_execs());
    EXPECT_TRUE(link("s1").is_connected());
    EXPECT_EQ(open_descriptors() - before, static_cast<std::size_t>(2 * (given - 1)))
        << "those of the one on its way are with the guest, those of the refused one are closed";
    EXPECT_TRUE(link("s1").cancel_exec("exec-0", 1s)) << "there is always room for small words";

    for (int i = 0; i < given; ++i) {
      EXPECT_EQ((co_await guest_.receive())->start_exec().exec_id(), "exec-" + std::to_string(i));
    }
    EXPECT_TRUE((co_await guest_.receive())->has_cancel_exec());
    EXPECT_TRUE(link("s1").takes_execs());
    EXPECT_TRUE(start_exec("s1", order_for("exec-late")));
    EXPECT_EQ((co_await guest_.receive())->start_exec().exec_id(), "exec-late");
  }());
}

TEST_F(ExecsTest, FilesOfSmallOrdersThatNobodyReadsAreBounded) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    int given = 0;
    while (given < 4000 && start_exec("s1", order_for("exec-" + std::to_string(given)))) {
      ++given;
    }
    EXPECT_LT(given, 2500);
    const std::size_t held = open_descriptors();
    guest_.close();
    co_await until([&] { return lost_["s1"] == 1; });
    EXPECT_LE(open_descriptors() + 2000, held) << "the queue's files are closed with it";
  }());
}

// The kernel lets a user have so many descriptors on their way, to all guests together.
TEST_F(ExecsTest, AnOrderWaitsWhileTooManyDescriptorsAreOnTheirWay) {
  const WithoutPrivilege ordinary;  // root may have more
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  UniqueFd others_end(ends[0]);
  std::optional<UniqueFd> unread(ends[1]);
  run([&]() -> awaitable<void> {
    co_await settle_in();
    fill_with_descriptors(others_end.get());
    EXPECT_TRUE(start_exec("s1", order_for("exec-1")));
    EXPECT_TRUE(link("s1").cancel_exec("exec-1", 1s)) << "goes behind it";
    EXPECT_TRUE(link("s1").is_connected());
    unread.reset();
    EXPECT_EQ((co_await guest_.receive())->start_exec().exec_id(), "exec-1");
    EXPECT_THAT(guest_.descriptors, SizeIs(2));
    EXPECT_EQ((co_await guest_.receive())->cancel_exec().exec_id(), "exec-1");
  }());
}

// Another process of the user holds them, and does not read.
TEST_F(ExecsTest, AnOrderThatTheKernelKeepsRefusingFailsAndOthersGoOn) {
  const WithoutPrivilege ordinary;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  UniqueFd others_end(ends[0]);
  std::optional<UniqueFd> unread(ends[1]);
  limits_.hand_over = 200ms;
  run([&]() -> awaitable<void> {
    co_await settle_in();
    fill_with_descriptors(others_end.get());
    const auto before = std::chrono::steady_clock::now();
    for (const char* exec_id : {"exec-1", "exec-2"}) {
      EXPECT_TRUE(start_exec("s1", order_for(exec_id)));
    }
    EXPECT_TRUE(link("s1").cancel_exec("exec-2", 1s));
    const std::size_t held = open_descriptors();
    co_await until([&] { return not_sent_.size() == 2; });
    EXPECT_GE(std::chrono::steady_clock::now() - before, limits_.hand_over);
    EXPECT_THAT(not_sent_.at("exec-1"), HasSubstr("refused to send its output files"));
    EXPECT_THAT(not_sent_.at("exec-1"), HasSubstr("descriptors in flight"));
    EXPECT_EQ(open_descriptors() + 4, held) << "their files are closed";
    EXPECT_THAT(refused_within(60s), Contains(KernelBudget::DescriptorsInFlight));

    // What came after them is sent, and the next order as soon as the kernel takes it.
    EXPECT_EQ((co_await guest_.receive())->cancel_exec().exec_id(), "exec-2");
    EXPECT_FALSE(link("s1").cancel_exec("exec-1", 1s)) << "the guest does not have it";
    unread.reset();
    EXPECT_TRUE(start_exec("s1", order_for("exec-1"))) << "may come again under its ID";
    EXPECT_EQ((co_await guest_.receive())->start_exec().exec_id(), "exec-1");
    EXPECT_THAT(guest_.descriptors, SizeIs(2));
    EXPECT_TRUE(link("s1").is_connected());
  }());
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(ExecsTest, ATreeThatTheKernelKeepsRefusingFailsToo) {
  const WithoutPrivilege ordinary;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd others_end(ends[0]);
  const UniqueFd unread(ends[1]);
  limits_.hand_over = 200ms;
  const fs::path directory = make_and_expect_someone("fresh");
  run([&]() -> awaitable<void> {
    ScriptedGuest fresh(io_.get_executor());
    EXPECT_TRUE(co_await fresh.arrive(directory));
    EXPECT_TRUE(co_await link("fresh").hello(within(5s)));
    fill_with_descriptors(others_end.get());
    const auto tree =
        link("fresh").receive_tree({.target = "/t"}, UniqueFd(::memfd_create("tree", MFD_CLOEXEC)));
    if (!tree) co_return ADD_FAILURE() << tree.error().message();
    const auto report = co_await link("fresh").tree_report(*tree, within(5s));
    EXPECT_THAT(report.value().failure, HasSubstr("refused to send the pipe of the copy"));
  }());
}

TEST_F(ExecsTest, OrdersThatCannotBeCarriedOutAreRefused) {
  const fs::path directory = make("s0");
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(start_exec("s0", order_for("exec-1"))) << "nobody is there";
    EXPECT_FALSE(link("s0").cancel_exec("exec-1", 1s));
    EXPECT_FALSE(link("s0").forget_exec("exec-1"));
    EXPECT_TRUE(link("s0").expect(someone()));
    ScriptedGuest fresh(io_.get_executor());
    EXPECT_TRUE(co_await fresh.arrive(directory));
    EXPECT_TRUE(co_await link("s0").hello(within(5s)));
    EXPECT_TRUE(link("s0").is_connected());
    EXPECT_FALSE(start_exec("s0", order_for("exec-1"))) << "before go";

    co_await settle_in();
    const auto too_long = start_exec("s1", order_for("exec-1", 5 << 20));
    EXPECT_EQ(too_long.error().reason(), reason::kInvalidArgument);
    EXPECT_THAT(too_long.error().message(), HasSubstr("4 MiB"));
    EXPECT_FALSE(start_exec("s1", order_for("x")));
    Order without_files = order_for("exec-1");
    without_files.files.err.reset();
    EXPECT_FALSE(start_exec("s1", std::move(without_files)));
    EXPECT_FALSE(link("s1").cancel_exec("exec-1", 1s)) << "nothing of the refused ones is kept";
    EXPECT_TRUE(start_exec("s1", order_for("exec-1")));
    EXPECT_FALSE(start_exec("s1", order_for("exec-1"))) << "a second time";
  }());
}

TEST_F(ExecsTest, AGuestThatComesBackTellsWhatItHas) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    EXPECT_THAT(last_hello_.execs, IsEmpty());
    EXPECT_TRUE(start_exec("s1", order_for("exec-1")));
    EXPECT_TRUE(co_await guest_.receive());
    guest_.close();
    co_await until([&] { return lost_["s1"] == 1; });
    EXPECT_FALSE(link("s1").is_connected());
    EXPECT_FALSE(start_exec("s1", order_for("exec-2")));

    co_await come_back({"exec-1", "exec-0"});
    EXPECT_THAT(last_hello_.execs, ElementsAre("exec-1", "exec-0"));
    co_await guest_.send(ScriptedGuest::exec_ended("exec-1", 7));
    co_await guest_.send(ScriptedGuest::exec_ended("exec-0"));
    co_await until([&] { return ended_.size() == 2; });
    EXPECT_THAT(ended_, ElementsAre(exited("exec-1", 7), exited("exec-0")));

    guest_.close();
    co_await until([&] { return lost_["s1"] == 2; });
    co_await come_back({"exec-1"});
    co_await guest_.send(ScriptedGuest::exec_ended("exec-1", 7));
    co_await until([&] { return ended_.size() == 3; });
    EXPECT_EQ(ended_.back(), exited("exec-1", 7)) << "told again until it is forgotten";
  }());
}

TEST_F(ExecsTest, WhatAGuestHasMayTakeSeveralMessages) {
  run([&]() -> awaitable<void> {
    co_await come_to_the_list();
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(connected_["s1"], 0) << "not before all of it was read";
      std::vector<std::string> ids(256);
      for (int j = 0; j < 256; ++j) {
        ids[static_cast<std::size_t>(j)] = "exec-" + std::to_string(i) + "-" + std::to_string(j);
      }
      co_await guest_.send(ScriptedGuest::execs_known(ids, i < 63));
    }
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
    EXPECT_THAT(last_hello_.execs, SizeIs(16384));
  }());
}

// The daemon forgets an exec, whose end was told before, while the guest tells that end again.
TEST_F(ExecsTest, AnEndThatCrossesTheWordToForgetIsNoOffence) {
  run([&]() -> awaitable<void> {
    co_await settle_in({"exec-1"});
    EXPECT_TRUE(link("s1").forget_exec("exec-1"));
    co_await guest_.send(ScriptedGuest::exec_truncated("exec-1"));
    co_await guest_.send(ScriptedGuest::exec_ended("exec-1"));
    EXPECT_TRUE((co_await guest_.receive())->has_forget_exec());
    EXPECT_TRUE(link("s1").stop());
    EXPECT_TRUE((co_await guest_.receive())->has_stop()) << "still connected";
    EXPECT_THAT(ended_, IsEmpty());
    EXPECT_THAT(truncated_, IsEmpty());
    co_await guest_.send(ScriptedGuest::exec_ended("exec-1"));
    EXPECT_FALSE(co_await guest_.receive()) << "but only once";
  }());
}

TEST_F(ExecsTest, WhateverAHandlerDoesToTheLinkIsSafe) {
  on_exec_ended_ = [this](const std::string& id) { rest(id); };
  run([&]() -> awaitable<void> {
    co_await settle_in({"exec-1", "exec-2"});
    co_await guest_.send_bytes(guestwire::frame(ScriptedGuest::exec_ended("exec-1")) +
                               guestwire::frame(ScriptedGuest::exec_ended("exec-2")));
    EXPECT_FALSE(co_await guest_.receive());
    EXPECT_THAT(ended_, SizeIs(1)) << "nothing more of a link that is gone";
  }());
}

struct Lie {
  std::string name;
  std::vector<v1::ToDaemon> words;
  std::size_t ends = 0;  // that are heard before the lie
};

class LyingGuestTest : public ExecsTest, public testing::WithParamInterface<Lie> {};

// It was given exec-1, and came with exec-0.
TEST_P(LyingGuestTest, IsCutOffAndItsNeighbourNoticesNothing) {
  run([&]() -> awaitable<void> {
    const fs::path neighbours = make("s2");
    const std::string secret = new_secret();
    EXPECT_TRUE(link("s2").expect(with_secret(secret)));
    ScriptedGuest neighbour(io_.get_executor());
    EXPECT_TRUE(co_await neighbour.arrive(neighbours, v1::PHASE_PASSED, secret, {"exec-of-s2"}));
    EXPECT_TRUE(co_await link("s2").hello(within(5s)));

    co_await settle_in({"exec-0"});
    EXPECT_TRUE(start_exec("s1", order_for("exec-1")));
    EXPECT_TRUE(co_await guest_.receive());
    for (const v1::ToDaemon& word : GetParam().words) co_await guest_.send(word);
    EXPECT_FALSE(co_await guest_.receive());
    co_await until([&] { return lost_["s1"] == 1; });
    EXPECT_THAT(ended_, SizeIs(GetParam().ends));
    EXPECT_FALSE(link("s1").is_connected());
    co_await come_back({"exec-0", "exec-1"});

    co_await neighbour.send(ScriptedGuest::exec_ended("exec-of-s2", 5));
    co_await until([&] { return ended_.size() == GetParam().ends + 1; });
    EXPECT_EQ(ended_.back(), exited("exec-of-s2", 5));
    EXPECT_EQ(lost_["s2"], 0);
  }());
}

v1::ToDaemon end_without_how() {
  v1::ToDaemon message = ScriptedGuest::exec_ended("exec-1");
  message.mutable_exec_ended()->clear_how();
  return message;
}
v1::ToDaemon end_of_the_future() {
  v1::ToDaemon message = ScriptedGuest::exec_ended("exec-1");
  message.mutable_exec_ended()->set_how(static_cast<v1::ExecEnded::How>(99));
  return message;
}

INSTANTIATE_TEST_SUITE_P(
    , LyingGuestTest,
    testing::Values(
        Lie{"AnEndOfANeighboursExec", {ScriptedGuest::exec_ended("exec-of-s2")}},
        Lie{"AnEndOfAnUnknownExec", {ScriptedGuest::exec_ended("exec-9")}},
        Lie{"AnEndOfNothing", {ScriptedGuest::exec_ended("")}},
        Lie{"AnEndWithAnIdOfAMegabyte", {ScriptedGuest::exec_ended(std::string(1000000, 'x'))}},
        Lie{"AnEndWithoutHow", {end_without_how()}},
        Lie{"AnEndInAWayThatIsNone", {end_of_the_future()}},
        Lie{"TheSameEndTwice",
            {ScriptedGuest::exec_ended("exec-1"), ScriptedGuest::exec_ended("exec-1")},
            1},
        Lie{"CutOutputOfANeighboursExec", {ScriptedGuest::exec_truncated("exec-of-s2")}},
        Lie{"CutOutputTwice",
            {ScriptedGuest::exec_truncated("exec-1"), ScriptedGuest::exec_truncated("exec-1")}},
        Lie{"CutOutputAfterTheEnd",
            {ScriptedGuest::exec_ended("exec-1"), ScriptedGuest::exec_truncated("exec-1")},
            1},
        Lie{"ItsExecsOnceMore", {ScriptedGuest::execs_known({"exec-1"})}},
        Lie{"EmptyListsOfExecs", std::vector(1000, ScriptedGuest::execs_known({}, true))}),
    [](const auto& info) { return info.param.name; });

struct FalseList {
  std::string name;
  std::vector<v1::ToDaemon> words;  // after Prepared
};

std::vector<std::string> many_ids(std::size_t count) {
  std::vector<std::string> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = "exec-" + std::to_string(i);
  return ids;
}

class FalseListTest : public ExecsTest, public testing::WithParamInterface<FalseList> {};

TEST_P(FalseListTest, EndsTheGreeting) {
  run([&]() -> awaitable<void> {
    co_await come_to_the_list();
    for (const v1::ToDaemon& word : GetParam().words) co_await guest_.send(word);
    EXPECT_FALSE(co_await guest_.receive());
    EXPECT_EQ(connected_["s1"], 0);
    EXPECT_THAT(ended_, IsEmpty());
    co_await come_back();
  }());
}

INSTANTIATE_TEST_SUITE_P(
    , FalseListTest,
    testing::Values(
        FalseList{"AnEndBeforeIt", {ScriptedGuest::exec_ended("exec-1")}},
        FalseList{
            "AnEndBetweenItsParts",
            {ScriptedGuest::execs_known({"exec-1"}, true), ScriptedGuest::exec_ended("exec-1")}},
        FalseList{"TheSameExecTwice", {ScriptedGuest::execs_known({"exec-1", "exec-1"})}},
        FalseList{"TooManyExecs", {ScriptedGuest::execs_known(many_ids(16385))}},
        FalseList{"TooManyParts", std::vector(65, ScriptedGuest::execs_known({}, true))},
        FalseList{"AnEmptyId", {ScriptedGuest::execs_known({""})}},
        FalseList{"AnIdThatIsAPath", {ScriptedGuest::execs_known({"../../etc/passwd"})}},
        FalseList{"AnIdOf201Characters", {ScriptedGuest::execs_known({std::string(201, 'x')})}}),
    [](const auto& info) { return info.param.name; });

TEST_F(ExecsTest, AFreshGuestHasNoExecs) {
  const fs::path directory = make("s1");
  EXPECT_TRUE(link("s1").expect(someone()));
  run([&]() -> awaitable<void> {
    EXPECT_TRUE(co_await guest_.arrive(directory, v1::PHASE_FRESH, "", {"exec-1"}));
    EXPECT_FALSE(co_await guest_.receive());
  }());
  EXPECT_EQ(connected_["s1"], 0);
}

TEST_F(ExecsTest, AMillionFramesEndAtTheFirst) {
  run([&]() -> awaitable<void> {
    co_await settle_in();
    std::string flood;
    const std::string frame = guestwire::frame(ScriptedGuest::exec_ended("exec-9"));
    for (int i = 0; i < 1000000; ++i) flood += frame;
    co_await guest_.send_bytes(std::move(flood));
    co_await until([&] { return lost_["s1"] == 1; });
    EXPECT_THAT(ended_, IsEmpty());
    co_await come_back();
  }());
}

}  // namespace
}  // namespace agbox::guestlink
