# SPDX-License-Identifier: Apache-2.0
"""scripts/check-contract notices every change of the client contract, and lets only additions in."""

import pathlib
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def api(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the contract that a test may break."""
    copy = tmp_path / "api"
    shutil.copytree(REPOSITORY / "api", copy)
    return copy


def check(api: pathlib.Path, *options: str) -> subprocess.CompletedProcess:
    command = [REPOSITORY / "scripts" / "check-contract", "--api", api, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def edit(api: pathlib.Path, file: str, before: str, after: str) -> None:
    path = api / "agbox" / "v1" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def test_the_contract_of_the_tree_is_announced(api):
    assert check(api).returncode == 0


def test_comments_layout_and_file_boundaries_do_not_matter(api):
    edit(api, "spec.proto", "message MountSpec {", "// A new remark.\n\n\nmessage   MountSpec\n{")
    text = (api / "agbox/v1/exec.proto").read_text()
    head, enum_and_rest = text.split("enum ExecState", 1)
    enum, rest = enum_and_rest.split("\n}\n", 1)
    (api / "agbox/v1/exec_state.proto").write_text(
        f'syntax = "proto3";\npackage agbox.v1;\nenum ExecState{enum}\n}}\n')
    (api / "agbox/v1/exec.proto").write_text(
        head + 'import public "agbox/v1/exec_state.proto";\n' + rest)
    result = check(api)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_addition_fails_until_it_is_announced(api):
    edit(api, "spec.proto", "  bool writable = 3;", "  bool writable = 3;\n  string owner = 100;")
    fresh = "agbox.v1.MountSpec field 100 owner: string"

    refused = check(api)
    assert refused.returncode == 1
    assert f"+ {fresh}" in refused.stderr
    assert "scripts/check-contract --accept" in refused.stderr

    assert check(api, "--accept").returncode == 0
    assert fresh in (api / "contract.txt").read_text().splitlines()
    assert check(api).returncode == 0


def test_a_new_call_and_its_messages_can_be_announced(api):
    edit(api, "service.proto", "message PingRequest {}",
         "message PingRequest {}\nmessage ShoutRequest { repeated int32 volumes = 1; }")
    edit(api, "service.proto", "service SandboxService {",
         "service SandboxService {\n  rpc Shout(stream ShoutRequest) returns (PingResponse);")
    assert check(api).returncode == 1
    assert check(api, "--accept").returncode == 0
    text = (api / "contract.txt").read_text()
    assert "rpc /agbox.v1.SandboxService/Shout: stream agbox.v1.ShoutRequest -> agbox.v1.PingResponse" in text


BREAKS = {
    "a field is removed": ("spec.proto", "  bool writable = 3;\n", ""),
    "a field is renamed": ("spec.proto", "bool writable = 3;", "bool writeable = 3;"),
    "a number changes": ("spec.proto", "bool writable = 3;", "bool writable = 4;"),
    "a type changes": ("spec.proto", "bool writable = 3;", "uint32 writable = 3;"),
    "a signedness changes": ("event.proto", "int32 exit_code = 2;", "uint32 exit_code = 2;"),
    "a field becomes repeated": ("spec.proto", "string gpus = 14;", "repeated string gpus = 14;"),
    "a presence is lost": ("service.proto", "optional string sandbox_id", "string sandbox_id"),
    "a presence is gained": ("spec.proto", "string gpus = 14;", "optional string gpus = 14;"),
    "a map changes": ("spec.proto", "map<string, string> envs = 7", "map<string, bytes> envs = 7"),
    "an enum value is renamed": ("exec.proto", "EXEC_STATE_FAILED = 3", "EXEC_STATE_BROKEN = 3"),
    "an enum number changes": ("spec.proto", "PORT_PROTOCOL_SCTP = 2", "PORT_PROTOCOL_SCTP = 3"),
    "the first name of a number changes": (
        "event.proto", "COMPANION_CONTAINER_READY = 13;\n  COMPANION_CONTAINER_FAILED = 14;",
        "SANDBOX_SERVICE_READY_ = 13;\n  COMPANION_CONTAINER_READY = 13;\n  COMPANION_CONTAINER_FAILED = 14;"),
    "a oneof is renamed": ("event.proto", "oneof details {", "oneof detail {"),
    "a JSON name changes": ("spec.proto", "string cpu_limit = 11;",
                            'string cpu_limit = 11 [json_name = "cpu"];'),
    "a call is removed": ("service.proto", "  rpc Ping(PingRequest) returns (PingResponse);\n", ""),
    "a call becomes a stream": ("service.proto", "returns (PingResponse)", "returns (stream PingResponse)"),
    "the service is renamed": ("service.proto", "service SandboxService", "service Sandboxes"),
    "a message vanishes": ("service.proto", "message PingRequest {}", "message PingRequest2 {}"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_refused_and_cannot_be_announced(api, name):
    file, before, after = BREAKS[name]
    edit(api, file, before, after)
    if name == "a message vanishes":
        edit(api, file, "Ping(PingRequest)", "Ping(PingRequest2)")
    announced = (api / "contract.txt").read_bytes()
    for options in ([], ["--accept"]):
        result = check(api, *options)
        assert result.returncode == 1
        assert "  - agbox.v1." in result.stderr
        assert "never be changed, renamed or removed" in result.stderr
    assert (api / "contract.txt").read_bytes() == announced


@pytest.mark.parametrize("file, last", [
    ("sandbox.proto", "SANDBOX_STATE_DELETED = 6;"),
    ("event.proto", "COMPANION_CONTAINER_FAILED = 14;"),
    ("exec.proto", "EXEC_STATE_CANCELLED = 4;"),
])
def test_enums_that_clients_check_get_no_new_number(api, file, last):
    edit(api, file, last, last + "\n  SOMETHING_NEW = 90;")
    result = check(api, "--accept")
    assert result.returncode == 1
    assert "value  90 SOMETHING_NEW" in result.stderr


def test_a_missing_announcement_is_not_an_empty_one(api):
    (api / "contract.txt").unlink()
    result = check(api, "--accept")
    assert result.returncode == 1
    assert "restore it from version control" in result.stderr


def test_a_contract_that_does_not_compile_says_where(api):
    edit(api, "spec.proto", "bool writable = 3;", "bool writable = 2;")
    result = check(api)
    assert result.returncode == 1
    assert "spec.proto" in result.stderr


def test_proto2_and_other_packages_are_refused(api):
    (api / "agbox/v1/odd.proto").write_text('syntax = "proto3";\npackage other;\n')
    assert "must be in package agbox.v1" in check(api).stderr
    (api / "agbox/v1/odd.proto").write_text('syntax = "proto2";\npackage agbox.v1;\n')
    assert "must have syntax proto3" in check(api).stderr
