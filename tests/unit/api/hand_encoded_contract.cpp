// SPDX-License-Identifier: Apache-2.0
// No generated header here: see hand_wire.h.
#include "unit/api/hand_encoded_contract.h"

#include "unit/api/hand_wire.h"

namespace agbox::test {

namespace {

HandEncoder mount_spec() {
  return HandEncoder().bytes(1, "/mount/source").bytes(2, "/mount/target").varint(3, 1);
}

HandEncoder copy_spec() {
  return HandEncoder()
      .bytes(1, "/copy/source")
      .bytes(2, "/copy/target")
      .bytes(3, "*.log")
      .bytes(3, "node_modules");
}

HandEncoder port_mapping() {
  return HandEncoder().varint(1, 8080).varint(2, 65535).varint(3, 2);
}

HandEncoder healthcheck_config() {
  return HandEncoder()
      .bytes(1, "CMD-SHELL")
      .bytes(1, "true")
      .time(2, 5, 1)
      .time(3, 6, 2)
      .varint(4, 7)
      .time(5, 8, 3)
      .time(6, 0, 250'000'000);
}

HandEncoder companion_container_spec() {
  return HandEncoder()
      .bytes(1, "db")
      .bytes(2, "postgres:16")
      .entry(3, "PGUSER", "agbox")
      .entry(3, "EMPTY", "")
      .message(4, healthcheck_config())
      .bytes(5, "createdb app")
      .bytes(5, "seed app")
      .bytes(6, "postgres")
      .bytes(6, "-c")
      .bytes(7, "1.5")
      .bytes(8, "512m")
      .bytes(9, "10g");
}

HandEncoder create_spec() {
  return HandEncoder()
      .bytes(1, "debian:12")
      .message(2, mount_spec())
      .message(3, copy_spec())
      .bytes(4, "git")
      .bytes(4, "uv")
      .message(5, companion_container_spec())
      .entry(6, "team", "core")
      .entry(7, "LANG", "C.UTF-8")
      .time(8, 1800, 5)
      .message(9, port_mapping())
      .bytes(10, "sleep")
      .bytes(10, "infinity")
      .bytes(11, "2")
      .bytes(12, "4g")
      .bytes(13, "20g")
      .bytes(14, "all")
      .message(101, HandEncoder().bytes(1, "required"))
      .message(102, HandEncoder().bytes(1, "optional"));
}

HandEncoder sandbox_handle() {
  return HandEncoder()
      .bytes(1, "box-1")
      .varint(2, 3)
      .varint(3, 18'446'744'073'709'551'615u)
      .message(4, companion_container_spec())
      .entry(5, "team", "core")
      .time(6, 1'700'000'000, 123'456'789)
      .bytes(7, "debian:12")
      .bytes(8, "SANDBOX_CREATE_FAILED")
      .bytes(9, "no such image")
      .time(10, 1'700'000'001, 5);
}

HandEncoder sandbox_phase_details() {
  return HandEncoder()
      .bytes(1, "materialize")
      .bytes(2, "CONTAINER_OOM")
      .bytes(3, "primary container OOM killed")
      .bytes(4, "idle_ttl");
}

HandEncoder exec_event_details() {
  return HandEncoder()
      .bytes(1, "exec-1")
      // int32 -1: ten bytes on the wire
      .varint(2, 18'446'744'073'709'551'615u)
      .varint(3, 3)
      .bytes(4, "EXEC_ERROR")
      .bytes(5, "exit code 1");
}

HandEncoder companion_container_event_details() {
  return HandEncoder().bytes(1, "db").bytes(2, "COMPANION_ERROR").bytes(3, "unhealthy");
}

HandEncoder event_head(std::uint64_t event_type) {
  return HandEncoder()
      .bytes(1, "box-1-42")
      .varint(2, 42)
      .bytes(3, "box-1")
      .varint(4, event_type)
      .time(5, 1'700'000'042, 7)
      .varint(6, 1)
      .varint(7, 1)
      .varint(8, 5);
}

HandEncoder exec_status() {
  return HandEncoder()
      .bytes(1, "exec-1")
      .bytes(2, "box-1")
      .varint(3, 4)
      .bytes(4, "make")
      .bytes(4, "-j2")
      .bytes(5, "/workspace")
      .entry(6, "CC", "clang")
      .varint(7, 143)
      .bytes(8, "killed by signal 15")
      .varint(9, 17);
}

}  // namespace

std::string hand_ping_response() {
  return HandEncoder()
      .bytes(1, "0.1.0")
      .bytes(2, "agboxd")
      .bytes(100, "feature-a")
      .bytes(100, "feature-b")
      .bytes(101, "instance")
      .wire();
}

std::string hand_mount_spec() {
  return mount_spec().wire();
}
std::string hand_copy_spec() {
  return copy_spec().wire();
}
std::string hand_port_mapping() {
  return port_mapping().wire();
}
std::string hand_healthcheck_config() {
  return healthcheck_config().wire();
}
std::string hand_companion_container_spec() {
  return companion_container_spec().wire();
}
std::string hand_create_spec() {
  return create_spec().wire();
}
std::string hand_sandbox_handle() {
  return sandbox_handle().wire();
}
std::string hand_sandbox_phase_details() {
  return sandbox_phase_details().wire();
}
std::string hand_exec_event_details() {
  return exec_event_details().wire();
}
std::string hand_companion_container_event_details() {
  return companion_container_event_details().wire();
}
std::string hand_event_with_phase() {
  return event_head(7).message(9, sandbox_phase_details()).wire();
}
std::string hand_event_with_exec() {
  return event_head(11).message(10, exec_event_details()).wire();
}
std::string hand_event_with_companion() {
  return event_head(14).message(11, companion_container_event_details()).wire();
}
std::string hand_exec_status() {
  return exec_status().wire();
}

std::string hand_create_sandbox_request() {
  return HandEncoder()
      .message(1, create_spec())
      .bytes(2, "box-1")
      .bytes(3, std::string_view("image: x\n\0\xFF", 11))
      .wire();
}

std::string hand_list_sandboxes_request() {
  return HandEncoder().varint(1, 1).entry(2, "team", "core").wire();
}

std::string hand_list_sandboxes_response() {
  return HandEncoder()
      .message(1, sandbox_handle())
      .message(1, HandEncoder().bytes(1, "box-2"))
      .wire();
}

std::string hand_delete_sandboxes_request() {
  return HandEncoder().entry(1, "team", "core").wire();
}

std::string hand_delete_sandboxes_response() {
  return HandEncoder().bytes(1, "box-1").bytes(1, "box-2").varint(2, 2).wire();
}

std::string hand_accepted_response() {
  return HandEncoder().varint(1, 1).wire();
}

std::string hand_subscribe_request() {
  return HandEncoder().bytes(1, "box-1").varint(2, 41).varint(3, 1).wire();
}

std::string hand_create_exec_request() {
  return HandEncoder()
      .bytes(1, "box-1")
      .bytes(2, "make")
      .bytes(2, "")
      .bytes(3, "/workspace")
      .entry(4, "CC", "clang")
      .bytes(5, "exec-1")
      .wire();
}

std::string hand_create_exec_response() {
  return HandEncoder().bytes(1, "exec-1").bytes(2, "/logs/out").bytes(3, "/logs/err").wire();
}

std::string hand_list_active_execs_response() {
  return HandEncoder().message(1, exec_status()).message(1, HandEncoder().bytes(1, "e2")).wire();
}

std::string hand_only_field_one(const std::string& bytes) {
  return HandEncoder().bytes(1, bytes).wire();
}

}  // namespace agbox::test
