// SPDX-License-Identifier: Apache-2.0
#include "unit/control/exec_fixture.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/failpoint.h"
#include "model/exec/exec_request.h"
#include "place/local/local_sandbox_place.h"

namespace agbox {

namespace fs = std::filesystem;

v1::CreateExecRequest ExecTest::request(const std::string& exec_id, const ChangeRequest& change,
                                        const std::string& sandbox_id) {
  v1::CreateExecRequest wanted;
  wanted.set_sandbox_id(sandbox_id);
  wanted.set_exec_id(exec_id);
  wanted.add_command("true");
  if (change) change(wanted);
  return wanted;
}

Result<v1::CreateExecResponse> ExecTest::create_exec(const v1::CreateExecRequest& wanted) {
  std::optional<Result<v1::CreateExecResponse>> reply;
  directory().create_exec(wanted.sandbox_id(), parse_exec_request(wanted),
                          [&](auto result) { reply = std::move(result); });
  run_until([&] { return reply.has_value(); });
  return *reply;
}

void ExecTest::begin_exec(const std::string& exec_id, const ChangeRequest& change,
                          const std::string& sandbox_id) {
  const auto created = create_exec(request(exec_id, change, sandbox_id));
  ASSERT_TRUE(created.has_value()) << created.error().message();
  wait_given(exec_id, sandbox_id);
}

void ExecTest::begin_accepting(const std::string& exec_id,
                               Directory::Reply<v1::CreateExecResponse> reply,
                               const std::function<void()>& meanwhile) {
  hold_store();
  ASSERT_TRUE(failpoint::arm("exec.commit.before=error"));  // counts, and nothing fails there
  directory().create_exec(kBox, parse_exec_request(request(exec_id)), std::move(reply));
  run_until([] { return failpoint::passages("exec.commit.before") > 0; });
  disarm();
  meanwhile();
  run_until_idle();
  release_store();
}

Result<v1::ExecStatus> ExecTest::get_exec(const std::string& exec_id) {
  std::optional<Result<v1::ExecStatus>> reply;
  directory().get_exec(exec_id, [&](auto result) { reply = std::move(result); });
  run_until([&] { return reply.has_value(); });
  return *reply;
}

Result<> ExecTest::cancel_exec(const std::string& exec_id) {
  std::optional<Result<>> reply;
  directory().cancel_exec(exec_id, [&](auto result) { reply = std::move(result); });
  run_until([&] { return reply.has_value(); });
  return *reply;
}

void ExecTest::wait_for_end(const std::string& exec_id) {
  run_until([&] { return exec(exec_id).state() != v1::EXEC_STATE_RUNNING; });
}

Result<v1::ListExecsResponse> ExecTest::list_execs(std::uint32_t page_size,
                                                   const std::string& page_token) {
  v1::ListExecsRequest list;
  list.set_sandbox_id(kBox);
  list.set_page_size(page_size);
  list.set_page_token(page_token);
  std::optional<Result<v1::ListExecsResponse>> reply;
  directory().list_execs(list, [&](auto result) { reply = std::move(result); });
  run_until([&] { return reply.has_value(); });
  return *reply;
}

std::vector<std::string> ExecTest::active(const v1::ListActiveExecsRequest& list) {
  std::vector<std::string> ids;
  for (const auto& one : directory().list_active_execs(list).execs()) ids.push_back(one.exec_id());
  return ids;
}

void ExecTest::report_end(const std::string& exec_id) {
  auto& place = dynamic_cast<LocalSandboxPlace&>(*directory().place_of(kBox));
  place.listener().exec_ended({.exec_id = exec_id, .detail = {}});
}

void ExecTest::report_not_sent(const std::string& exec_id, const std::string& why,
                               const std::string& sandbox_id) {
  auto& place = dynamic_cast<LocalSandboxPlace&>(*directory().place_of(sandbox_id));
  place.listener().exec_not_sent(exec_id, why);
}

int ExecTest::times_begun(const std::string& exec_id) const {
  return static_cast<int>(std::ranges::count(guests_.begun(), exec_id));
}

std::vector<std::string> ExecTest::exec_events(const std::string& sandbox_id, std::uint64_t from) {
  std::vector<std::string> lines;
  for (const Seen& seen : events(sandbox_id, from)) {
    std::string line = v1::EventType_Name(seen.event.event_type());
    if (seen.event.has_exec()) line += " " + seen.event.exec().exec_id();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> ExecTest::log_files(const std::string& sandbox_id) const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(temp_directory_.path() / "execs" / sandbox_id)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::string ExecTest::errors_of(const std::string& exec_id) {
  std::ifstream file(exec(exec_id).stderr_log_path());
  return {std::istreambuf_iterator(file), {}};
}

void ExecTest::end_container(int exit_code, bool oom_killed, const std::string& id) {
  engine().end_container(*engine().find_container(container(id)), exit_code, oom_killed);
}

}  // namespace agbox
