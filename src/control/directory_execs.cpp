// SPDX-License-Identifier: Apache-2.0
// The part of the directory that handles execs. Running execs are read from memory, ended ones from
// the store. If the store lists a running exec that memory did not have at the time of the request,
// the exec started after the request.
#include <charconv>
#include <utility>

#include "async/await_callback.h"
#include "async/cancellation.h"
#include "base/check.h"
#include "base/failpoint.h"
#include "base/uuid.h"
#include "control/directory.h"
#include "control/exec/exec_status.h"
#include "control/page_token.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// Of stored data. As a status an exec is larger by a few dozen bytes, of about two hundred.
constexpr std::size_t kExecPageBytes = kPageBytes / 3 * 2;

Error already_exists(const std::string& exec_id) {
  return {reason::kExecIdAlreadyExists,
          "exec_id " + exec_id + " already exists",
          {{"exec_id", exec_id}}};
}

bool is_running(const ExecRecord& exec) {
  return exec.state == v1::EXEC_STATE_RUNNING;
}

Result<std::uint64_t> parse_place(std::string_view token) {
  std::uint64_t place = 0;
  if (token.empty()) return place;
  const auto [end, problem] = std::from_chars(token.data(), token.data() + token.size(), place);
  const bool is_ours = problem == std::errc() && end == token.data() + token.size() &&
                       place <= static_cast<std::uint64_t>(INT64_MAX);
  if (!is_ours) return foreign_page_token();
  return place;
}

}  // namespace

std::shared_ptr<const ExecRecord> Directory::running_exec(const std::string& exec_id) const {
  const SandboxExecs* owner = services_.execs.owner(exec_id);
  return owner == nullptr ? nullptr : owner->shown(exec_id);
}

void Directory::create_exec(const std::string& sandbox_id, Result<ExecRequest> spec,
                            Reply<v1::CreateExecResponse> reply) {
  auto and_then = [reply = std::move(reply)](Result<v1::CreateExecResponse> response) {
    const bool is_accepted = response.has_value();
    reply(std::move(response));
    if (is_accepted) AGBOX_FAILPOINT("exec.reply.after");
  };
  answer<v1::CreateExecResponse>(std::move(and_then), create_exec(sandbox_id, std::move(spec)));
}

void Directory::cancel_exec(const std::string& exec_id, Reply<void> reply) {
  answer(std::move(reply), cancel_exec(exec_id));
}

void Directory::get_exec(const std::string& exec_id, Reply<v1::ExecStatus> reply) {
  answer(std::move(reply), get_exec(exec_id));
}

void Directory::list_execs(const v1::ListExecsRequest& request,
                           Reply<v1::ListExecsResponse> reply) {
  answer(std::move(reply), list_execs(request));
}

void Directory::find_exec_output(const std::string& exec_id, OnExecEnd on_end,
                                 Reply<ExecOutputSource> reply) {
  answer(std::move(reply), find_exec_output(exec_id, std::move(on_end)));
}

Directory::Call<v1::CreateExecResponse> Directory::create_exec(std::string sandbox_id,
                                                               Result<ExecRequest> spec) {
  while (true) {
    AGBOX_CO_TRY(actor, find(sandbox_id));
    if (const auto taken = actor->check_takes_execs(); !taken) {
      AGBOX_CO_TRY_VOID(co_await actor->refuse(taken.error()).wait());
    }
    AGBOX_CO_TRY_VOID(spec);
    AGBOX_CO_TRY_VOID(actor->name_container(spec->request));
    if (spec->request.exec_id().empty()) spec->request.set_exec_id(random_uuid());
    const std::string exec_id = spec->request.exec_id();
    if (SandboxExecs* const owner = services_.execs.owner(exec_id)) {
      if (owner->shown(exec_id)) co_return std::unexpected(already_exists(exec_id));
      // Another exec with this ID is being accepted: wait for the outcome and try again.
      co_await owner->wait_until_decided(exec_id);
      if (co_await is_cancelled()) co_return std::unexpected(shutting_down());
      continue;
    }
    const auto reachable = actor->check_reaches_guest(spec->request.container());
    if (reachable) co_return co_await actor->execs().create(std::move(*spec));
    if (engine_asked_->is_set()) {
      // That the ID was used says more: a repeated request need not be repeated once more.
      if (co_await read_exec(exec_id)) co_return std::unexpected(already_exists(exec_id));
      co_return std::unexpected(reachable.error());
    }
    AGBOX_CO_TRY_VOID(co_await wait_for(engine_asked_));
  }
}

Directory::Call<void> Directory::cancel_exec(std::string exec_id) {
  if (running_exec(exec_id)) co_return co_await services_.execs.owner(exec_id)->cancel(exec_id);
  AGBOX_CO_TRY_VOID(co_await read_ended_exec(exec_id));
  co_return std::unexpected(exec_already_terminal(exec_id));
}

Directory::Call<ExecRecord> Directory::read_exec(std::string exec_id) {
  co_return co_await await_callback<Result<ExecRecord>>(
      [&](auto done) { services_.store.read_exec(exec_id, std::move(done)); });
}

Directory::Call<ExecRecord> Directory::read_ended_exec(std::string exec_id) {
  AGBOX_CO_TRY(exec, co_await read_exec(exec_id));
  if (is_running(exec)) co_return std::unexpected(exec_not_found(exec_id));
  co_return exec;
}

Directory::Call<v1::ExecStatus> Directory::get_exec(std::string exec_id) {
  if (const auto running = running_exec(exec_id)) {
    co_return to_exec_status(*running, services_.execs.owner(exec_id)->newest_sequence());
  }
  AGBOX_CO_TRY(exec, co_await read_ended_exec(exec_id));
  AGBOX_CO_TRY(actor, find(exec.sandbox_id));
  co_return to_exec_status(exec, actor->handle().last_event_sequence());
}

v1::ListActiveExecsResponse Directory::list_active_execs(
    const v1::ListActiveExecsRequest& request) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  struct Active {
    std::shared_ptr<const ExecRecord> exec;
    std::uint64_t newest_sequence;
  };
  std::map<std::string_view, Active> active;
  for (const auto& [sandbox_id, actor] : actors_) {
    if (request.has_sandbox_id() && request.sandbox_id() != sandbox_id) continue;
    for (auto& exec : actor->execs().all_shown()) {
      const std::string_view exec_id = exec->request.exec_id();
      if (exec_id <= request.page_token()) continue;
      active.emplace(exec_id, Active{std::move(exec), actor->handle().last_event_sequence()});
    }
  }
  v1::ListActiveExecsResponse response;
  std::size_t bytes = 0;
  for (const auto& [exec_id, one] : active) {
    v1::ExecStatus status = to_exec_status(*one.exec, one.newest_sequence);
    bytes += status.ByteSizeLong() + 8;
    const auto listed = static_cast<std::uint32_t>(response.execs_size());
    const bool is_full = request.page_size() > 0 && listed >= request.page_size();
    if (listed > 0 && (is_full || bytes > kPageBytes)) {
      response.set_next_page_token(response.execs().rbegin()->exec_id());
      break;
    }
    *response.add_execs() = std::move(status);
  }
  return response;
}

Directory::Call<v1::ListExecsResponse> Directory::list_execs(v1::ListExecsRequest request) {
  AGBOX_CO_TRY(actor, find(request.sandbox_id()));
  AGBOX_CO_TRY(after, parse_place(request.page_token()));
  // Capture running execs with the current sequence: by the time the store replies, they may have
  // ended at a later sequence.
  std::map<std::string, std::shared_ptr<const ExecRecord>, std::less<>> running;
  for (auto& exec : actor->execs().all_shown()) running[exec->request.exec_id()] = exec;
  const std::uint64_t sequence_now = actor->handle().last_event_sequence();
  const std::size_t count = request.page_size() > 0 ? request.page_size() : SIZE_MAX;
  AGBOX_CO_TRY(page, co_await await_callback<Result<ExecPage>>([&](auto done) {
                 services_.store.read_execs(request.sandbox_id(), after, count, kExecPageBytes,
                                            std::move(done));
               }));
  AGBOX_CO_TRY(sandbox, find(request.sandbox_id()));
  const std::uint64_t newest = sandbox->handle().last_event_sequence();
  v1::ListExecsResponse response;
  for (const ExecRecord& exec : page.execs) {
    const auto shown = running.find(exec.request.exec_id());
    if (shown != running.end()) {
      *response.add_execs() = to_exec_status(*shown->second, sequence_now);
    } else if (!is_running(exec)) {
      *response.add_execs() = to_exec_status(exec, newest);
    } else {
      co_return response;  // started after the request, like all that follow
    }
  }
  if (page.has_more) response.set_next_page_token(std::to_string(page.last));
  co_return response;
}

Directory::Call<ExecOutputSource> Directory::find_exec_output(std::string exec_id,
                                                              OnExecEnd on_end) {
  const auto source_of = [this](const ExecRecord& exec) {
    const auto sandbox = find(exec.sandbox_id);
    return ExecOutputSource{.root = exec.record.output_root(),
                            .stdout_path = exec.record.stdout_log_path(),
                            .stderr_path = exec.record.stderr_log_path(),
                            .limit_bytes = sandbox ? (*sandbox)->exec_output_limit() : 0,
                            .is_terminal = !is_running(exec),
                            .on_end = {}};
  };
  if (const auto running = running_exec(exec_id)) {
    ExecOutputSource source = source_of(*running);
    source.on_end = services_.execs.owner(exec_id)->watch(exec_id, std::move(on_end));
    co_return source;
  }
  AGBOX_CO_TRY(exec, co_await read_ended_exec(exec_id));
  co_return source_of(exec);
}

Result<SandboxExecs*> Directory::owner_of(const std::string& exec_id) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (!running_exec(exec_id)) return std::unexpected(exec_already_terminal(exec_id));
  return services_.execs.owner(exec_id);
}

void Directory::attach_exec_input(const std::string& exec_id,
                                  std::shared_ptr<const InputWriter> writer,
                                  Reply<ExecInput> reply) {
  answer<ExecInput>(std::move(reply), attach_exec_input(exec_id, std::move(writer)));
}

Directory::Call<ExecInput> Directory::attach_exec_input(std::string exec_id,
                                                        std::shared_ptr<const InputWriter> writer) {
  AGBOX_CO_TRY(owner, owner_of(exec_id));
  co_return co_await owner->attach_input(exec_id, std::move(writer));
}

Result<> Directory::end_exec_input(const std::string& exec_id, const InputWriter* writer) {
  AGBOX_TRY(owner, owner_of(exec_id));
  return owner->end_input(exec_id, writer);
}

Result<> Directory::resize_exec_terminal(const std::string& exec_id, TerminalSize size) {
  AGBOX_TRY(owner, owner_of(exec_id));
  return owner->resize_terminal(exec_id, size);
}

Result<> Directory::signal_exec(const std::string& exec_id, int number) {
  AGBOX_TRY(owner, owner_of(exec_id));
  return owner->signal(exec_id, number);
}

void Directory::count_new_object(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->count_new_object();
}

void Directory::recheck_companion(const std::string& sandbox_id, const std::string& name) {
  if (const auto actor = find(sandbox_id)) (*actor)->recheck_companion(name);
}

void Directory::recheck_container(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->recheck_container();
}

}  // namespace agbox
