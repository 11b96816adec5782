// SPDX-License-Identifier: Apache-2.0
// Between the messages of the API and the plain types of the public headers.
#pragma once

#include <agbox/command.h>
#include <agbox/event.h>
#include <agbox/sandbox_info.h>
#include <agbox/sandbox_spec.h>
#include <agbox/v1/service.pb.h>

#include <chrono>
#include <optional>
#include <string>

namespace agbox::sdk {

google::protobuf::Duration to_duration(std::chrono::nanoseconds time);
std::chrono::nanoseconds from_duration(const google::protobuf::Duration& duration);
google::protobuf::Timestamp to_timestamp(Time time);
Time from_timestamp(const google::protobuf::Timestamp& timestamp);

v1::CreateSandboxRequest to_request(const SandboxSpec& spec);
v1::CreateExecRequest to_request(const std::string& sandbox_id, const Command& command);

SandboxInfo from_message(const v1::SandboxHandle& sandbox);
SandboxStats from_message(const v1::SandboxStats& stats);
ExecInfo from_message(const v1::ExecStatus& exec);
Event from_message(const v1::SandboxEvent& event);
EventMessage from_message(const v1::SubscribeEventsResponse& response);
// Without output.
CommandResult result_of(const v1::ExecStatus& exec);

}  // namespace agbox::sdk
