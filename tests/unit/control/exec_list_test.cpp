// SPDX-License-Identifier: Apache-2.0
// Lists of execs: order, pages, sizes, and truth at one moment.
#include "control/page_token.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ExecListTest : public ExecTest {
 protected:
  static std::vector<std::string> lines(const v1::ListExecsResponse& page) {
    std::vector<std::string> all;
    for (const auto& one : page.execs()) {
      all.push_back(one.exec_id() + " " + v1::ExecState_Name(one.state()).substr(11));
    }
    return all;
  }
};

TEST_F(ExecListTest, AllOfASandboxInTheOrderOfTheirStart) {
  create_ready("box-2");
  begin_exec("elsewhere", {}, "box-2");
  for (const char* id : {"zzzz", "mmmm", "aaaa"}) begin_exec(id);
  end_exec("mmmm", 0);
  wait_for_end("mmmm");
  const auto page = list_execs().value();
  EXPECT_THAT(lines(page), ElementsAre("zzzz RUNNING", "mmmm FINISHED", "aaaa RUNNING"));
  EXPECT_EQ(page.next_page_token(), "");
  for (const auto& one : page.execs()) EXPECT_EQ(one.last_event_sequence(), 7U);
}

TEST_F(ExecListTest, ComesInPagesOfTheSizeThatWasAskedFor) {
  for (int i = 0; i < 5; ++i) begin_exec("page-" + std::to_string(i));
  std::vector<std::string> seen;
  std::string token;
  do {
    const auto page = list_execs(2, token).value();
    EXPECT_LE(page.execs_size(), 2);
    for (const auto& one : page.execs()) seen.push_back(one.exec_id());
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(seen, ElementsAre("page-0", "page-1", "page-2", "page-3", "page-4"));
  EXPECT_EQ(list_execs(2, "what").error().reason(), reason::kInvalidArgument);
  EXPECT_EQ(list_execs(2, "99999999999999999999").error().reason(), reason::kInvalidArgument);
}

TEST_F(ExecListTest, RepliesStayBelowWhatClientsTake) {
  const auto large = [](auto& r) { r.add_command(std::string(std::size_t{3} << 20, 'x')); };
  for (int i = 0; i < 3; ++i) begin_exec("wide-" + std::to_string(i), large);
  std::string token;
  int count = 0;
  do {
    const auto page = list_execs(0, token).value();
    EXPECT_LT(page.ByteSizeLong(), std::size_t{4} << 20);
    count += page.execs_size();
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(count, 3);

  v1::ListActiveExecsRequest request;
  std::vector<std::string> active_ids;
  do {
    const auto page = directory().list_active_execs(request);
    EXPECT_LT(page.ByteSizeLong(), std::size_t{4} << 20);
    for (const auto& one : page.execs()) active_ids.push_back(one.exec_id());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(active_ids, ElementsAre("wide-0", "wide-1", "wide-2"));
}

TEST_F(ExecListTest, ActiveOnesAreSortedByIdAndChosenBySandbox) {
  create_ready("box-2");
  begin_exec("bbbb", {}, "box-2");
  begin_exec("cccc");
  begin_exec("aaaa");
  begin_exec("dddd");
  end_exec("dddd", 0);
  wait_for_end("dddd");
  EXPECT_THAT(active(), ElementsAre("aaaa", "bbbb", "cccc"));
  v1::ListActiveExecsRequest request;
  request.set_sandbox_id(kBox);
  EXPECT_THAT(active(request), ElementsAre("aaaa", "cccc"));
  request.set_sandbox_id("");  // present and empty: matches nothing
  EXPECT_THAT(active(request), IsEmpty());
  request.set_sandbox_id("nobody");
  EXPECT_THAT(active(request), IsEmpty());
  request.clear_sandbox_id();
  request.set_page_size(2);
  EXPECT_THAT(active(request), ElementsAre("aaaa", "bbbb"));
}

// Ends come while the store is read: no answer calls an exec running at a sequence beyond its end.
TEST_F(ExecListTest, NothingIsCalledRunningBeyondItsEnd) {
  std::vector<std::optional<Result<v1::ListExecsResponse>>> pages(60);
  std::vector<std::optional<Result<v1::ExecStatus>>> statuses(60);
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::string id = "moving-" + std::to_string(i);
    begin_exec(id);
    v1::ListExecsRequest list;
    list.set_sandbox_id(kBox);
    report_end(id);
    directory().list_execs(list, [&, i](auto page) { pages[i] = std::move(page); });
    // Asked at whatever moment the end happens to have reached.
    for (std::size_t turn = 0; turn < i % 7; ++turn)
      loop_.io().run_one_for(std::chrono::milliseconds(1));
    directory().get_exec(id, [&, i](auto status) { statuses[i] = std::move(status); });
  }
  run_until([&] {
    return std::ranges::all_of(pages, [](const auto& one) { return one.has_value(); }) &&
           std::ranges::all_of(statuses, [](const auto& one) { return one.has_value(); });
  });
  settle();
  std::map<std::string, std::uint64_t> end_of;
  for (const Seen& seen : events(kBox)) {
    if (seen.event.event_type() == v1::EXEC_FINISHED) {
      end_of[seen.event.exec().exec_id()] = seen.event.sequence();
    }
  }
  ASSERT_EQ(end_of.size(), pages.size());
  const auto check = [&](const v1::ExecStatus& status) {
    const bool has_ended = status.last_event_sequence() >= end_of.at(status.exec_id());
    EXPECT_EQ(status.state() == v1::EXEC_STATE_RUNNING, !has_ended) << status.ShortDebugString();
  };
  for (const auto& page : pages) {
    for (const auto& status : page->value().execs()) check(status);
  }
  for (const auto& status : statuses) check(status->value());
}

}  // namespace
}  // namespace agbox
