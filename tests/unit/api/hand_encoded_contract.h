// SPDX-License-Identifier: Apache-2.0
// One example of every message of the client contract, encoded by hand with every field set. The
// values say which message and field they belong to; the numbers are written down here a second
// time.
#pragma once

#include <string>

namespace agbox::test {

std::string hand_ping_response();
std::string hand_mount_spec();
std::string hand_copy_spec();
std::string hand_port_mapping();
std::string hand_healthcheck_config();
std::string hand_companion_container_spec();
std::string hand_create_spec();
std::string hand_sandbox_handle();
std::string hand_sandbox_phase_details();
std::string hand_exec_event_details();
std::string hand_companion_container_event_details();
std::string hand_event_with_phase();
std::string hand_event_with_exec();
std::string hand_event_with_companion();
std::string hand_exec_status();
std::string hand_create_sandbox_request();
std::string hand_list_sandboxes_request();
std::string hand_list_sandboxes_response();
std::string hand_delete_sandboxes_request();
std::string hand_delete_sandboxes_response();
std::string hand_accepted_response();
std::string hand_subscribe_request();
std::string hand_create_exec_request();
std::string hand_create_exec_response();
std::string hand_list_active_execs_response();

// A message whose only field is number 1: `bytes` is its string, or the encoding of its message.
std::string hand_only_field_one(const std::string& bytes);

}  // namespace agbox::test
