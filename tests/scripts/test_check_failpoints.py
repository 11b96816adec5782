# SPDX-License-Identifier: Apache-2.0
"""Each kind of fault is planted in a small tree, and scripts/check-failpoints names it. Unit tests pass
every failpoint that it lists."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check-failpoints"
MATERIALIZE = """
asio::awaitable<Result<int>> ensure(Services& services) {
  // A comment may say co_await engine.make() as it likes.
  AGBOX_CO_TRY(made,
               co_await step(
                   "create.thing", services.engine.make()));
  co_return made;
}

asio::awaitable<Result<>> materialize(Services& services) {
  co_return co_await ensure(services);
}
"""
TEARDOWN = """
asio::awaitable<Result<>> teardown(Services& services) {
  co_return co_await step("delete.thing", services.engine.remove());
}

asio::awaitable<Result<>> teardown_within(Services& services, int limit) {
  asio::steady_timer timer(co_await asio::this_coro::executor, limit);
  co_return co_await (teardown(services) || timer.async_wait());
}
"""


WORKLOADS = """
EngineAwaitable<> Workloads::ensure_workload(SandboxFacts& facts) {
  co_return co_await step("workload.thing", client_.create());
}
"""
OTHERS = """
asio::awaitable<Result<>> {name}(Services& services) {{
  co_return co_await step("{name}.thing", services.engine.work());
}}
"""


DIRECTORY = """
Directory::Call<void> Directory::stop(std::string sandbox_id) {
  AGBOX_CO_TRY(actor, co_await find(sandbox_id));
  if (co_await is_cancelled()) co_return shutting_down();
  co_return co_await actor->stop()
      .wait();
}

Directory::Call<SandboxActor*> Directory::find(std::string sandbox_id) {
  journal_
      .append({}, AGBOX_FAILPOINT("store.commit.before"));
}
"""
WAITS = """# FILE | CALLEE | WHY
src/control/directory.cpp | actor->stop | failpoints store.commit.before, create.thing.after
src/control/directory.cpp | journal_.append | none: nothing is lost
"""


def check(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(SCRIPT), "--root", str(root), *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


def plant(root: Path, materialize: str = MATERIALIZE, teardown: str = TEARDOWN, waits: str = WAITS) -> Path:
    directory = root / "src/control/sandbox/operations"
    directory.mkdir(parents=True)
    upkeep = root / "src/control/upkeep"
    upkeep.mkdir()
    adapter = root / "src/engine/docker"
    (adapter / "workload").mkdir(parents=True)
    (adapter / "objects").mkdir()
    (adapter / "workload/workloads.cpp").write_text(WORKLOADS)
    (adapter / "workload/companions.cpp").write_text(OTHERS.format(name="companion"))
    (adapter / "objects/orphan_sweep.cpp").write_text(OTHERS.format(name="sweep"))
    (directory / "materialize.cpp").write_text(materialize)
    (directory / "teardown.cpp").write_text(teardown)
    for name in ("start_primary", "stop", "resume", "inspect"):
        (directory / f"{name}.cpp").write_text(OTHERS.format(name=name))
    (upkeep / "janitor.cpp").write_text(OTHERS.format(name="janitor"))
    (root / "src/control/directory.cpp").write_text(DIRECTORY)
    (root / "scripts/lib").mkdir(parents=True)
    (root / "scripts/lib/control_waits.txt").write_text(waits)
    return root


def test_a_step_has_a_failpoint_on_both_sides(tmp_path):
    listed = check(plant(tmp_path), "--list")
    assert listed.returncode == 0
    assert listed.stdout.split() == [
        f"{name}.thing.{side}"
        for name in ("create", "start_primary", "stop", "resume", "delete", "inspect", "janitor",
                     "companion", "workload", "sweep")
        for side in ("before", "after")]


def test_a_call_through_the_port_is_held_to_the_same_rule_in_the_adapter(tmp_path):
    through = MATERIALIZE.replace("co_await ensure(services)", "co_await services.engine.ensure_workload(facts)")
    assert check(plant(tmp_path, through)).returncode == 0


def test_a_function_of_another_file_is_held_to_the_same_rule_there(tmp_path):
    shared = MATERIALIZE.replace("co_await ensure(services)", "co_await start_primary(services)")
    assert check(plant(tmp_path, shared)).returncode == 0


@pytest.mark.parametrize("awaited", ["services.engine.make()", "make(services)",
                                     "unbroken(services.calls, step(\"create.x\", make()))"])
def test_an_await_without_a_step_is_named_with_its_line(tmp_path, awaited):
    bare = MATERIALIZE.replace("co_await ensure(services)", f"co_await {awaited}")
    result = check(plant(tmp_path, bare))
    assert result.returncode == 1
    assert "src/control/sandbox/operations/materialize.cpp:11: co_await " + awaited in result.stdout


def test_a_name_is_used_once(tmp_path):
    result = check(plant(tmp_path, teardown=TEARDOWN.replace("delete.thing", "create.thing")))
    assert result.returncode == 1
    assert "src/control/sandbox/operations/teardown.cpp:3: the name create.thing is used twice" in result.stdout


def test_a_file_without_steps_is_a_fault(tmp_path):
    result = check(plant(tmp_path, teardown="// nothing\n"))
    assert result.returncode == 1
    assert "src/control/sandbox/operations/teardown.cpp: no step was found" in result.stdout


@pytest.mark.parametrize("replaced, by, words", [
    ("src/control/directory.cpp | actor->stop", "# ",
     "src/control/directory.cpp:5: actor->stop has no line in scripts/lib/control_waits.txt"),
    ("src/control/directory.cpp | journal_.append", "# ",
     "src/control/directory.cpp:10: journal_.append has no line"),
    ("actor->stop", "actor->halt", "scripts/lib/control_waits.txt: src/control/directory.cpp has no actor->halt"),
    ("create.thing.after", "create.nothing.after", "there is no failpoint create.nothing.after"),
    ("none: nothing is lost", "why not", "neither a failpoint nor 'none: ' with a reason"),
])
def test_a_wait_or_an_append_of_control_has_a_failpoint_or_a_reason(tmp_path, replaced, by, words):
    assert check(plant(tmp_path / "right")).returncode == 0
    result = check(plant(tmp_path / "wrong", waits=WAITS.replace(replaced, by)))
    assert result.returncode == 1
    assert words in result.stdout


def test_the_tree_passes():
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


def test_unit_tests_pass_every_failpoint():
    """By its name, or with all that begin alike (failpoints_of_a_lifecycle)."""
    source = "".join(file.read_text() for file in (ROOT / "tests" / "unit").rglob("*.[ch]*"))
    named = set(re.findall(r'"([a-z_.]+\.(?:before|after))[="]', source))
    families = tuple(name for listed in re.findall(r"failpoints_of_a_lifecycle\(\{([^}]*)\}", source)
                     for name in re.findall(r'"([a-z_]+\.)"', listed))
    steps = check(ROOT, "--list").stdout.split()
    passed = {step for step in steps if step in named or step.startswith(families)}
    assert set(steps) == passed, f"in no unit test: {sorted(set(steps) - passed)}"
    subjects = {step.split(".")[0] for step in steps}
    # Also those of waits outside of the operations, which scripts/lib/control_waits.txt has.
    code = "".join(file.read_text() for file in (ROOT / "src").rglob("*.cpp"))
    exist = {f"{step}.{side}" for step in re.findall(r'step\(\s*"([a-z_.]+)"', code) for side in ("before", "after")}
    unknown = {name for name in named if name.split(".")[0] in subjects} - set(steps) - exist
    assert not unknown, f"in unit tests only: {sorted(unknown)}"
