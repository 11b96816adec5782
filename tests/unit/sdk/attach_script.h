// SPDX-License-Identifier: Apache-2.0
// What a daemon does in one connection of a session with an exec.
#pragma once

#include <cstdint>
#include <string>

#include "unit/sdk/scripted_daemon.h"

namespace agbox::test {

inline grpc::Status lost() {
  return ErrorInfoBytes{.code = grpc::StatusCode::UNAVAILABLE,
                        .message = "agboxd is shutting down",
                        .reason = "SHUTTING_DOWN"}
      .status();
}

inline void attached(AttachStream& stream, std::uint64_t input_offset) {
  v1::AttachExecResponse response;
  response.mutable_attached()->set_input_offset(input_offset);
  stream.Write(response);
}

inline void print(AttachStream& stream, std::uint64_t offset, const std::string& data,
                  v1::OutputStream output = v1::OUTPUT_STREAM_STDOUT) {
  v1::AttachExecResponse response;
  response.mutable_output()->set_stream(output);
  response.mutable_output()->set_offset(offset);
  response.mutable_output()->set_data(data);
  stream.Write(response);
}

inline void accept_input(AttachStream& stream, std::uint64_t position) {
  v1::AttachExecResponse response;
  response.set_input_accepted(position);
  stream.Write(response);
}

inline grpc::Status end_exec(AttachStream& stream, int code) {
  v1::AttachExecResponse response;
  response.mutable_ended()->set_exec_id("exec-1");
  response.mutable_ended()->set_state(code == 0 ? v1::EXEC_STATE_FINISHED : v1::EXEC_STATE_FAILED);
  response.mutable_ended()->set_exit_code(code);
  stream.Write(response);
  return grpc::Status::OK;
}

// Input until its end, or so many bytes.
inline std::string take_input(AttachStream& stream, std::size_t most = SIZE_MAX) {
  std::string input;
  v1::AttachExecRequest request;
  while (input.size() < most && stream.Read(&request) && !request.has_end_input()) {
    input += request.input();
  }
  return input;
}

}  // namespace agbox::test
