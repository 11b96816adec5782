// SPDX-License-Identifier: Apache-2.0
// The part of the directory that handles execs. Running execs are read from memory, ended ones from
// the store. If the store lists a running exec that memory did not have at the time of the request,
// the exec started after the request.
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/uuid.h"
#include "control/directory.h"
#include "control/exec/exec_status.h"
#include "control/page_token.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// Of stored data. As a status an exec is larger by a few dozen bytes, of about two hundred.
constexpr std::size_t kExecPageBytes = kPageBytes / 3 * 2;

Error already_terminal(const std::string& exec_id) {
  return {reason::kExecAlreadyTerminal,
          "exec " + exec_id + " is already terminal",
          {{"exec_id", exec_id}}};
}

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
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto actor = find(sandbox_id);
  if (!actor) return reply(std::unexpected(actor.error()));
  if (const auto ready = (*actor)->check_takes_execs(); !ready) {
    return reply(std::unexpected(ready.error()));
  }
  if (!spec) return reply(std::unexpected(spec.error()));
  if (spec->request.exec_id().empty()) spec->request.set_exec_id(random_uuid());
  const std::string exec_id = spec->request.exec_id();
  SandboxExecs* owner = services_.execs.owner(exec_id);
  if (owner == nullptr) return (*actor)->execs().create(std::move(*spec), std::move(reply));
  if (owner->shown(exec_id)) return reply(std::unexpected(already_exists(exec_id)));
  // Another exec with this ID is being accepted: wait for the outcome and try again.
  owner->after_all_so_far(
      [this, sandbox_id, spec = std::move(spec), reply] { create_exec(sandbox_id, spec, reply); });
}

void Directory::cancel_exec(const std::string& exec_id, Reply<void> reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (running_exec(exec_id)) {
    return services_.execs.owner(exec_id)->cancel(exec_id, std::move(reply));
  }
  services_.store.read_exec(exec_id, [exec_id, reply](const Result<ExecRecord>& exec) {
    if (!exec) return reply(std::unexpected(exec.error()));
    reply(std::unexpected(is_running(*exec) ? exec_not_found(exec_id) : already_terminal(exec_id)));
  });
}

void Directory::get_exec(const std::string& exec_id, const Reply<v1::ExecStatus>& reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (const auto running = running_exec(exec_id)) {
    return reply(to_exec_status(*running, services_.execs.owner(exec_id)->newest_sequence()));
  }
  services_.store.read_exec(exec_id, [this, exec_id, reply](const Result<ExecRecord>& exec) {
    if (!exec) return reply(std::unexpected(exec.error()));
    if (is_running(*exec)) return reply(std::unexpected(exec_not_found(exec_id)));
    const auto actor = find(exec->sandbox_id);
    if (!actor) return reply(std::unexpected(actor.error()));
    reply(to_exec_status(*exec, (*actor)->handle().last_event_sequence()));
  });
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

void Directory::list_execs(const v1::ListExecsRequest& request,
                           const Reply<v1::ListExecsResponse>& reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto actor = find(request.sandbox_id());
  if (!actor) return reply(std::unexpected(actor.error()));
  const auto after = parse_place(request.page_token());
  if (!after) return reply(std::unexpected(after.error()));
  // Capture running execs with the current sequence: by the time the store replies, they may have
  // ended at a later sequence.
  std::map<std::string, std::shared_ptr<const ExecRecord>, std::less<>> running;
  for (auto& exec : (*actor)->execs().all_shown()) running[exec->request.exec_id()] = exec;
  const std::uint64_t sequence_now = (*actor)->handle().last_event_sequence();

  auto fill = [this, sandbox_id = request.sandbox_id(), running = std::move(running), sequence_now,
               reply](const Result<ExecPage>& page) {
    if (!page) return reply(std::unexpected(page.error()));
    const auto sandbox = find(sandbox_id);
    if (!sandbox) return reply(std::unexpected(sandbox.error()));
    const std::uint64_t newest = (*sandbox)->handle().last_event_sequence();
    v1::ListExecsResponse response;
    for (const ExecRecord& exec : page->execs) {
      const auto shown = running.find(exec.request.exec_id());
      if (shown != running.end()) {
        *response.add_execs() = to_exec_status(*shown->second, sequence_now);
      } else if (!is_running(exec)) {
        *response.add_execs() = to_exec_status(exec, newest);
      } else {
        return reply(std::move(response));  // started after the request, like all that follow
      }
    }
    if (page->has_more) response.set_next_page_token(std::to_string(page->last));
    reply(std::move(response));
  };
  const std::size_t count = request.page_size() > 0 ? request.page_size() : SIZE_MAX;
  services_.store.read_execs(request.sandbox_id(), *after, count, kExecPageBytes, std::move(fill));
}

void Directory::find_exec_output(const std::string& exec_id, OnExecEnd on_end,
                                 const Reply<ExecOutputSource>& reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
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
    return reply(std::move(source));
  }
  services_.store.read_exec(exec_id, [exec_id, source_of, reply](const Result<ExecRecord>& exec) {
    if (!exec) return reply(std::unexpected(exec.error()));
    if (is_running(*exec)) return reply(std::unexpected(exec_not_found(exec_id)));
    reply(source_of(*exec));
  });
}

void Directory::engine_made_something(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->engine_made_something();
}

void Directory::doubt_container(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->doubt_container();
}

}  // namespace agbox
