// SPDX-License-Identifier: Apache-2.0
// What tests of execs do again and again, on top of the whole control plane.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {

class ExecTest : public ControlTest {
 protected:
  using ChangeRequest = std::function<void(v1::CreateExecRequest&)>;

  // A daemon with one sandbox that is ready.
  ExecTest() {
    start();
    create_ready(kBox);
    wait_swept();  // from here on the engine is asked only for what tests are about
  }

  static v1::CreateExecRequest request(const std::string& exec_id, const ChangeRequest& change = {},
                                       const std::string& sandbox_id = kBox);
  Result<v1::CreateExecResponse> create_exec(const v1::CreateExecRequest& wanted);
  Result<v1::CreateExecResponse> create_exec(const std::string& exec_id,
                                             const ChangeRequest& change = {}) {
    return create_exec(request(exec_id, change));
  }
  // Accepted, and the guest has it.
  void begin_exec(const std::string& exec_id, const ChangeRequest& change = {},
                  const std::string& sandbox_id = kBox);
  // Calls `meanwhile` while its acceptance is on its way to the disk.
  void begin_accepting(
      const std::string& exec_id, Directory::Reply<v1::CreateExecResponse> reply,
      const std::function<void()>& meanwhile = [] {});
  Result<v1::ExecStatus> get_exec(const std::string& exec_id);
  v1::ExecStatus exec(const std::string& exec_id) { return get_exec(exec_id).value(); }
  Result<> cancel_exec(const std::string& exec_id);
  void wait_for_end(const std::string& exec_id);
  Result<v1::ListExecsResponse> list_execs(std::uint32_t page_size = 0,
                                           const std::string& page_token = "");
  std::vector<std::string> active(const v1::ListActiveExecsRequest& request = {});

  // The guest's side.
  static std::string container(const std::string& sandbox_id = kBox) {
    return primary_container_name(sandbox_id);
  }
  GivenExec* given(const std::string& exec_id, const std::string& sandbox_id = kBox) {
    return guests_.exec(container(sandbox_id), exec_id);
  }
  void wait_given(const std::string& exec_id, const std::string& sandbox_id = kBox) {
    run_until([&] { return given(exec_id, sandbox_id) != nullptr; });
  }
  void wait_forgotten(const std::string& exec_id) {
    run_until([&] { return given(exec_id) == nullptr; });
  }
  void end_exec(const std::string& exec_id, int exit_code) {
    guests_.end_exec(container(), exec_id, exit_code);
  }
  // As if its guest had just reported that it exited with 0; nothing is on disk yet.
  void report_end(const std::string& exec_id);
  // As if the kernel had refused to send it.
  void report_not_sent(const std::string& exec_id, const std::string& why,
                       const std::string& sandbox_id = kBox);
  int times_begun(const std::string& exec_id) const;

  // "EXEC_STARTED one-1", for events from `from` on.
  std::vector<std::string> exec_events(const std::string& sandbox_id = kBox,
                                       std::uint64_t from = 3);
  std::vector<std::string> log_files(const std::string& sandbox_id = kBox) const;
  // The content of its stderr log.
  std::string errors_of(const std::string& exec_id);
  // Ends a guest's container as the engine sees it.
  void end_container(int exit_code, bool oom_killed = false, const std::string& id = kBox);

  static constexpr const char* kBox = "box-1";
};

}  // namespace agbox
