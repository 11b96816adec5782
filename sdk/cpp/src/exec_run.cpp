// SPDX-License-Identifier: Apache-2.0
#include <agbox/event_follower.h>
#include <agbox/exec_run.h>
#include <google/protobuf/util/time_util.h>

#include <thread>
#include <utility>

#include "base/uuid.h"

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

// Creates an exec with a new ID, at most once however often the request is retried: a daemon may
// accept it and exit before its response arrives.
Result<void> create_once(const RawClient& client, const v1::CreateExecRequest& request,
                         const FollowOptions& options) {
  ReconnectBackoff backoff(client, "start of exec " + request.exec_id(), options);
  bool was_retried = false;
  const auto created = backoff.retry([&] {
    auto response = client.create_exec(request);
    const bool exists = !response && response.error().code == StatusCode::AlreadyExists;
    if (exists && was_retried) response = v1::CreateExecResponse();
    was_retried = true;
    return response;
  });
  if (created) return {};
  Error error = created.error();
  error.metadata.emplace("exec_id", request.exec_id());
  return std::unexpected(std::move(error));
}

}  // namespace

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
  if (options.exec_id.empty()) {
    request.set_exec_id(random_uuid());
    const auto created = create_once(client, request, options.follow);
    if (!created) return std::unexpected(created.error());
  } else {
    request.set_exec_id(options.exec_id);
    const auto created = client.create_exec(request);
    if (!created) return std::unexpected(created.error());
  }
  const auto read = read_output(client, request.exec_id(), options.sinks, options.follow);
  if (!read) return std::unexpected(read.error());
  return wait_for_exec(client, request.exec_id(), options.follow);
}

}  // namespace agbox::sdk
