# SPDX-License-Identifier: Apache-2.0
"""Each kind of fault is planted in a small tree, and scripts/check-layers names it."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check-layers"
CLASS_WITH_STATE = "class Actor {\n public:\n  void stop();\n\n private:\n  int state_ = 0;\n};\n"


def check(root: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), "--root", str(root)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "api/agbox/v1/service.proto": 'syntax = "proto3";\n',
        "src/base/result.h": "#include <expected>\n",
        "src/paths/fixed_paths.h": '#include "base/result.h"\n',
        "src/model/name.h": '#include "base/result.h"\n#include "agbox/v1/service.pb.h"\n',
        "src/store/store.h": '#include <sqlite3.h>\n#include "model/name.h"\n',
        "src/engine/engine.h": '#include "model/name.h"\n',
        "src/engine/docker/client.h": '#include "engine/engine.h"\n// Docker\n',
        "src/engine/docker/json.h": "// Docker's\n",
        "src/isolation/firewall.h": '#include "model/name.h"\n',
        "src/place/place.h": '#include "model/name.h"\n',
        "src/place/local/place.h": '#include "place/place.h"\n#include "isolation/firewall.h"\n',
        "src/control/loop.h": '#include "store/store.h"\n#include "engine/engine.h"\n#include "place/place.h"\n',
        "src/control/actor.h": CLASS_WITH_STATE,
        "src/control/actor.cpp": '#include "control/actor.h"\nvoid Actor::stop() {\n  AGBOX_ON_CONTROL_THREAD(loop_);\n}\n',
        "src/control/value.h": "class Value {\n public:\n  int get() const;\n};\n",
        "src/rpc/service.h": '#include <grpcpp/grpcpp.h>\n#include "control/loop.h"\n',
        "src/daemon/main.cpp": '#include "rpc/service.h"\n',
        "sdk/cpp/client.h": '#include <grpcpp/grpcpp.h>\n#include "paths/fixed_paths.h"\n',
        "src/cli/main.cpp": '#include "client.h"\n#include "base/result.h"\n',
        "tests/unit/store/store_test.cpp": '#include "store/store.h"\n#include <gtest/gtest.h>\n',
    }.items():
        plant(tmp_path, name, text)
    return tmp_path


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_tree_that_keeps_the_rule_passes(tree: Path) -> None:
    run = check(tree)
    assert (run.returncode, run.stdout) == (0, "")


def test_our_own_tree_passes() -> None:
    run = check(ROOT)
    assert (run.returncode, run.stdout) == (0, "")


@pytest.mark.parametrize("name, text, words", [
    ("src/base/up.h", '#include "model/name.h"\n', "base (level 0) may not see model (level 1)"),
    ("src/model/up.h", '#include "store/store.h"\n', "model (level 1) may not see store (level 2)"),
    ("src/model/side.h", '#include "paths/fixed_paths.h"\n', "may not see paths (level 1)"),
    ("src/store/side.h", '#include "engine/engine.h"\n', "store (level 2) may not see engine"),
    ("src/control/up.h", '#include "rpc/service.h"\n', "control (level 4) may not see rpc"),
    ("src/control/client.h", '#include "engine/docker/client.h"\n', "control sees engine only through src/engine/engine.h"),
    ("src/control/adapter.h", '#include "place/local/place.h"\n', "control sees place only through src/place/place.h"),
    ("src/control/rules.h", '#include "isolation/firewall.h"\n', "control sees place only through src/place/place.h"),
    ("src/engine/docker/side.h", '#include "isolation/firewall.h"\n', "engine (level 2) may not see isolation"),
    ("src/place/side.h", '#include "control/loop.h"\n', "place (level 3) may not see control (level 4)"),
    ("src/control/word.h", "// As Docker does.\n", "Docker belongs to src/engine"),
    ("src/rpc/word.h", 'const char* kText = "docker ps";\n', "docker belongs to src/engine"),
    ("src/engine/engine.h", "// Podman is next.\n", "Podman belongs to src/engine"),
    ("src/control/disk.cpp", "  ::fsync(fd);\n", "::fsync( may block the control thread"),
    ("src/control/walk.cpp", "  if (std::filesystem::exists(path)) return;\n", "may block the control thread"),
    ("src/control/alias.cpp", "  if (fs::exists(path)) return;\n", "may block the control thread"),
    ("src/control/link.cpp", "  ::readlink(path, buffer, size);\n", "::readlink( may block the control thread"),
    ("src/engine/engine.h", '#include "engine/docker/json.h"\n', "a port shows nothing behind it"),
    ("src/place/place.h", '#include "isolation/firewall.h"\n', "a port shows nothing behind it"),
    ("src/place/local/local_place.cpp", "  const auto made = make_exec_logs(root);\n",
     "make_exec_logs() may block the control thread; call it with run_blocking()"),
    ("src/place/local/local_place.cpp",
     "  co_await run_blocking(pool, [&] { return f(1); });\n  LinkDirectory::adopt(root, id);\n",
     "local_place.cpp:2: LinkDirectory::adopt() may block the control thread"),
    ("src/guestlink/guest_link.cpp", "  ::unlink(path);\n", "unlink() may block the control thread"),
    ("src/control/sleep.cpp", "  std::this_thread::sleep_for(1s);\n", "may block the control thread"),
    ("src/control/actor.cpp", "void other() {\n  AGBOX_ON_CONTROL_THREAD(l);\n  Actor::stop();\n}\n",
     "Actor has state and does not assert the control thread"),
    ("src/control/actor.cpp", "void Actor::stop() {}\n", "Actor has state and does not assert the control thread"),
    ("src/cli/side.cpp", '#include "control/loop.h"\n', "cli may not see control (level 4)"),
    ("sdk/cpp/side.h", '#include "model/name.h"\n', "sdk/cpp may not see model (level 1)"),
    ("src/control/rpc.h", "#include <grpcpp/server.h>\n", "control may not see gRPC"),
    ("src/model/rpc.h", '#include "agbox/v1/service.grpc.pb.h"\n', "model may not see gRPC"),
    ("src/base/foreign.h", "#include <boost/asio.hpp>\n", "base may include the standard library only"),
    ("src/control/sql.h", "#  include <sqlite3.h>\n", "<sqlite3.h> belongs to store"),
    ("src/helpers/any.h", "#include <string>\n", "src/helpers/any.h: in no layer"),
    ("src/model/typo.h", '#include "base/reslt.h"\n', '"base/reslt.h" is no file of the tree'),
    ("src/model/test.h", '#include "unit/store/store_test.cpp"\n', "may not see its tests"),
    ("tests/unit/store/up_test.cpp", '#include "control/loop.h"\n', "may not see control"),
    ("tests/unit/temp_directory.h", '#include "store/store.h"\n', "test support may not see store"),
    ("tests/unit/store/rpc_test.cpp", "#include <grpcpp/grpcpp.h>\n", "store may not see gRPC"),
])
def test_a_planted_fault_is_named(tree: Path, name: str, text: str, words: str) -> None:
    plant(tree, name, text)
    run = check(tree)
    assert run.returncode == 1
    assert words in run.stdout
    assert {"src/control/actor.cpp": "src/control/actor.h"}.get(name, name) in run.stdout
    assert len(run.stdout.splitlines()) == 1, "one fault, one line"


@pytest.mark.parametrize("name, text", [
    ("src/control/own.cpp", "  Subscription::open(feed);\n"),
    ("src/control/comment.cpp", "  work();  // never ::fsync() here\n"),
    ("src/place/local/local_place.cpp", "  co_await run_blocking(pool, [&] {\n    return make_exec_logs(root(id));\n  });\n"),
    ("src/execlog/file.cpp", "  ::fsync(fd);\n"),
    ("src/cli/hint.cpp", 'const char* kHint = "docker ps";\n'),
    ("tests/unit/control/docker_test.cpp", '#include "engine/docker/client.h"\n// Docker\n'),
])
def test_what_is_allowed_is_not_named(tree: Path, name: str, text: str) -> None:
    plant(tree, name, text)
    run = check(tree)
    assert (run.returncode, run.stdout) == (0, "")


def test_a_circle_inside_one_layer_is_named(tree: Path) -> None:
    plant(tree, "src/model/a.h", '#include "model/b.h"\n')
    plant(tree, "src/model/b.h", '#include "a.h"\n')
    run = check(tree)
    assert run.returncode == 1
    assert "in a circle: src/model/a.h -> src/model/b.h -> src/model/a.h" in run.stdout


def test_an_empty_tree_is_a_fault(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 1
