// SPDX-License-Identifier: Apache-2.0
#include <agbox/event_follower.h>
#include <agbox/exec_run.h>
#include <google/protobuf/util/time_util.h>

#include <thread>
#include <utility>

#include "base/uuid.h"
#include "create_once.h"

namespace agbox::sdk {

namespace {

using Sink = std::function<void(std::string_view)>;

Result<void> pass_on(OutputFollower& output, const Sink& sink) {
  while (true) {
    const auto chunk = output.next();
    if (!chunk) return std::unexpected(chunk.error());
    if (!*chunk) return {};
    sink(**chunk);
  }
}

// Retries while the daemon restarts.
Result<v1::ExecStatus> get_exec(const RawClient& client, const std::string& exec_id,
                                const FollowOptions& options) {
  ReconnectBackoff backoff(client, "state of exec " + exec_id, options);
  v1::GetExecRequest request;
  request.set_exec_id(exec_id);
  auto response = backoff.retry([&] { return client.get_exec(request); });
  if (!response) return std::unexpected(response.error());
  return std::move(*response->mutable_exec());
}

}  // namespace

Result<std::string> start_exec(const RawClient& client, v1::CreateExecRequest request,
                               const FollowOptions& options) {
  if (!request.exec_id().empty()) {
    const auto created = client.create_exec(request);
    if (!created) return std::unexpected(created.error());
    return request.exec_id();
  }
  request.set_exec_id(random_uuid());
  ReconnectBackoff backoff(client, "start of exec " + request.exec_id(), options);
  auto created = create_once(backoff, [&] { return client.create_exec(request); });
  if (!created) {
    created.error().metadata.emplace("exec_id", request.exec_id());
    return std::unexpected(std::move(created.error()));
  }
  return request.exec_id();
}

bool is_terminal(v1::ExecState state) {
  return state == v1::EXEC_STATE_FINISHED || state == v1::EXEC_STATE_FAILED ||
         state == v1::EXEC_STATE_CANCELLED;
}

Result<void> read_output(const RawClient& client, const std::string& exec_id,
                         const OutputSinks& sinks, const FollowOptions& options,
                         OutputExtent extent) {
  // If one stream fails for good, do not wait for the other.
  std::stop_source both;
  const std::stop_callback on_stop(options.stop, [&both] { both.request_stop(); });
  FollowOptions each = options;
  each.stop = both.get_token();
  const auto read = [&](v1::OutputStream stream, const Sink& sink) -> Result<void> {
    if (!sink) return {};
    OutputFollower output(client, exec_id, stream, each, extent);
    auto outcome = pass_on(output, sink);
    if (!outcome) both.request_stop();
    return outcome;
  };
  Result<void> of_stderr;
  std::thread reads_stderr([&] { of_stderr = read(v1::OUTPUT_STREAM_STDERR, sinks.on_stderr); });
  const Result<void> of_stdout = read(v1::OUTPUT_STREAM_STDOUT, sinks.on_stdout);
  reads_stderr.join();
  // Return the error of the stream that failed, not of the one stopped because of it.
  const bool was_stopped = !of_stdout && of_stdout.error().kind == ErrorKind::Cancelled;
  return of_stdout || (was_stopped && !of_stderr) ? of_stderr : of_stdout;
}

Result<v1::ExecStatus> wait_for_exec(const RawClient& client, const std::string& exec_id,
                                     const FollowOptions& options) {
  auto exec = get_exec(client, exec_id, options);
  if (!exec || is_terminal(exec->state())) return exec;
  EventFollower events(client, exec->sandbox_id(), exec->last_event_sequence(), options);
  while (true) {
    const auto event = events.next();
    if (!event) return std::unexpected(event.error());
    if (event->exec().exec_id() == exec_id && is_terminal(event->exec().exec_state())) {
      return get_exec(client, exec_id, options);
    }
  }
}

Result<v1::ExecStatus> run(const RawClient& client, const std::string& sandbox_id,
                           const std::vector<std::string>& command, const RunOptions& options) {
  v1::CreateExecRequest request;
  request.set_sandbox_id(sandbox_id);
  request.mutable_command()->Assign(command.begin(), command.end());
  request.set_container(options.container);
  request.set_cwd(options.cwd);
  request.mutable_env_overrides()->insert(options.env_overrides.begin(),
                                          options.env_overrides.end());
  request.set_user(options.user);
  if (options.timeout != std::chrono::nanoseconds::zero()) {
    *request.mutable_timeout() =
        google::protobuf::util::TimeUtil::NanosecondsToDuration(options.timeout.count());
  }
  request.set_exec_id(options.exec_id);
  const auto exec_id = start_exec(client, std::move(request), options.follow);
  if (!exec_id) return std::unexpected(exec_id.error());
  const auto read = read_output(client, *exec_id, options.sinks, options.follow);
  if (!read) return std::unexpected(read.error());
  return wait_for_exec(client, *exec_id, options.follow);
}

}  // namespace agbox::sdk
