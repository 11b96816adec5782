# SPDX-License-Identifier: Apache-2.0
"""Companions and services on real engines: real servers, their order, failures, restarts and end."""

import contextlib
import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.companions import (
    COMPANION_FAILED,
    COMPANION_READY,
    FAILED,
    FAILPOINTS,
    LISTS,
    PORT,
    READY,
    RESTART_FAILPOINTS,
    STARTING,
    STOPPED,
    address,
    companion_container,
    health_check,
    kinds,
    of_companion,
    page_of,
    soon_unhealthy,
    statuses,
    web_server,
)
from support.execs import FINISHED, Execs, errors, output
from support.images import make_image
from support.probed_host import DOCKER0, INTERNET, METADATA, ROUTER, UPLINK, ProbedHost, Vantage, everywhere
from support.sandboxes import (
    CONFIG,
    PENDING,
    PREPARING,
    assert_one_history,
    connected,
    crashing,
    inside,
    inspect,
    left_over,
    primary,
    restarted,
    started,
    wait_until,
)
from support.sandboxes import FAILED as SANDBOX_FAILED
from support.sandboxes import READY as SANDBOX_READY
from support.service_images import CLIENT, POSTGRES, POSTGRES_PROBE, REDIS, REDIS_PROBE, make_service_images

NOWHERE = "127.0.0.1:1/no-such-image:1"  # nobody listens there: the engine refuses the pull at once
ACCEPTED = 1  # the event
SQL = "psql -h db -U postgres -v ON_ERROR_STOP=1 -qAtc"


@pytest.fixture
def image(engine):
    return make_image(engine.api, "companions:1")


@pytest.fixture
def daemon(make_daemon, test_user, engine):
    return started(make_daemon(user=test_user, engine=engine, config=CONFIG))


@pytest.fixture
def sandboxes(daemon, contract):
    with connected(daemon, contract) as client:
        yield client


@pytest.fixture
def make_companion(contract, image):
    """make_companion("db", …): of busybox, which runs and does nothing unless specified otherwise."""

    def make(name, **spec):
        spec.setdefault("image", image)
        spec.setdefault("command", ["sleep", "1000000"])
        return contract.spec.CompanionContainerSpec(name=name, **spec)

    return make


def reported(sandboxes, sandbox_id, name, kind, count=1):
    """Every event of a sandbox until this companion had so many events of the kind."""
    seen = []

    def is_last(event):
        if event.companion_container.name == name and event.event_type == kind:
            seen.append(event)
        return len(seen) == count

    return sandboxes.follow(sandbox_id, is_last)


def succeeds(sandboxes, sandbox_id, *command):
    """The output of a command inside."""
    status = Execs(sandboxes, sandbox_id).run(*command)
    assert status.state == FINISHED, (command, status.exit_code, status.error, errors(status))
    return output(status).strip()


def moment(text):
    """Of a time in UTC, as stat or an engine prints it, to be compared."""
    day, time = re.split("[ T]", text.strip(), maxsplit=1)
    return day, re.match(r"[\d:.]+", time)[0].ljust(18, "0")


def out_of_reach(sandboxes, sandbox_id, place):
    """A page that a sandbox must not get: it has no such host, or no answer from it."""
    status = Execs(sandboxes, sandbox_id).run("sh", "-c", 'timeout 5 "$@" || echo no answer', "try", *page_of(place))
    assert output(status).strip() == "no answer", errors(status)


# --- real servers --------------------------------------------------------------------------------


@pytest.mark.engines("20.10", "28")
@pytest.mark.xdist_group("servers")
def test_a_database_with_its_tables_is_there_before_the_sandbox_is_ready(
    daemon, sandboxes, engine, contract, say
):
    make_service_images(engine.api, say)
    spec = contract.spec
    db = spec.CompanionContainerSpec(
        name="db",
        image=POSTGRES,
        healthcheck=health_check(contract, *POSTGRES_PROBE),
        envs={"TABLE": "made_by_hook"},
        post_start_on_primary=[
            f'{SQL} "create table $TABLE (who text, mine text)"',
            f"{SQL} \"insert into $TABLE values ('$(whoami)', '$MINE')\"",
        ],
    )
    cache = spec.CompanionContainerSpec(
        name="cache", image=REDIS, healthcheck=health_check(contract, *REDIS_PROBE)
    )
    sandboxes.create(
        "app-1", CLIENT, required_services=[db], optional_services=[cache],
        envs={"MINE": "of the sandbox", "TABLE": "of the sandbox"},
    )
    events = sandboxes.wait("app-1", SANDBOX_READY)
    required = [event for event in events if event.companion_container.name != "cache"]
    assert kinds(required) == [ACCEPTED, PREPARING, COMPANION_READY, 3]
    assert [event.sandbox_state for event in required] == [PENDING] * 3 + [SANDBOX_READY]
    # The hooks ran before, as the runtime user, with both environments.
    rows = succeeds(sandboxes, "app-1", "sh", "-c", f"{SQL} 'select * from made_by_hook'")
    assert rows == "agbox|of the sandbox"

    ready = reported(sandboxes, "app-1", "cache", COMPANION_READY)
    assert kinds(of_companion(ready, "cache")) == [COMPANION_READY]
    before_ready = SANDBOX_READY not in [event.sandbox_state for event in ready[:-1]]
    assert ready[-1].sandbox_state == (PENDING if before_ready else SANDBOX_READY)
    assert succeeds(sandboxes, "app-1", "redis-cli", "-h", "cache", "set", "key", "value") == "OK"
    assert succeeds(sandboxes, "app-1", "redis-cli", "-h", "cache", "get", "key") == "value"

    found = statuses(sandboxes.get("app-1"))
    assert list(found) == ["db", "cache"]
    for name, role, used in (("db", 1, POSTGRES), ("cache", 2, REDIS)):
        shown = found[name]
        assert (shown.role, shown.image, shown.state, shown.health) == (role, used, READY, "healthy")
        assert (shown.restart_count, shown.last_exit, shown.error_code) == (0, "", "")
    text = daemon.agbox("sandbox", "get", "app-1").stdout
    assert f"companion=db (required service, {POSTGRES}): Ready, healthy\n" in text
    assert "made_by_hook" not in text
    assert_one_history(sandboxes.delete_wait("app-1"))
    assert left_over(engine) == []


def test_required_services_start_one_after_another_as_declared(
    sandboxes, engine, contract, image, make_companion
):
    names = ("one-1", "two-2", "three-3")
    services = [
        make_companion(
            name,
            command=["sh", "-c", "sleep 0.5; touch /healthy; exec sleep 1000000"],
            healthcheck=health_check(contract, "CMD", "test", "-e", "/healthy"),
            post_start_on_primary=[f"echo {name} >> /tmp/hooks"],
        )
        for name in names
    ]
    events = sandboxes.create_ready("order-1", image, required_services=services)
    assert kinds(events) == [ACCEPTED, PREPARING] + [COMPANION_READY] * 3 + [3]
    assert [event.companion_container.name for event in events[2:5]] == list(names)
    assert inside(engine, "order-1", "cat", "/tmp/hooks").split() == list(names)
    # The next one was started when the one before was healthy.
    for name, next_name in itertools.pairwise(names):
        stat = ("stat", "-c", "%y", "/healthy")
        healthy = engine.docker("exec", companion_container("order-1", name), *stat).stdout
        begun = inspect(engine, companion_container("order-1", next_name))["State"]["StartedAt"]
        assert moment(healthy) <= moment(begun)
    sandboxes.delete_wait("order-1")


def test_the_output_of_hooks_is_kept_next_to_that_of_execs(sandboxes, contract, image, make_companion):
    check = health_check(contract, "CMD", "true")
    db = make_companion("db", healthcheck=check, post_start_on_primary=["echo to stdout; echo to stderr >&2"])
    sandboxes.create_ready("kept-1", image, required_services=[db])
    folder = Path(Execs(sandboxes, "kept-1").run("true").stdout_log_path).parent
    files = list(folder.glob("hook-db-1-*"))
    assert sorted(file.read_text() for file in files) == ["to stderr\n", "to stdout\n"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    sandboxes.delete_wait("kept-1")


@pytest.mark.engines("28")
def test_a_service_is_reached_from_its_own_sandbox_only(make_engine, engine_name, make_daemon, test_user, contract):
    with contextlib.ExitStack() as stack:
        host = ProbedHost(make_engine(engine_name), stack)
        engine = host.engine
        image = make_image(engine.api, "companions:1")
        daemon = started(make_daemon(user=test_user, engine=engine, config=CONFIG))
        sandboxes = stack.enter_context(connected(daemon, contract))
        web, cache = (web_server(contract, name, image) for name in ("web", "cache"))
        sandboxes.create_ready("own-1", image, required_services=[web, cache])
        sandboxes.create_ready("none-1", image)
        host.open_barriers()
        for name in ("web", "cache"):
            there = address(engine, companion_container("own-1", name))
            for place in (name, there):
                assert succeeds(sandboxes, "own-1", *page_of(place)) == name
                out_of_reach(sandboxes, "none-1", place)
        # A companion is behind the same firewall as the primary.
        gateway = host.place("own-1")["Gateway"]
        neighbour = f"tcp/{host.place('none-1')['IPAddress']}/{PORT}"
        host.serve(host.network_namespace(primary("none-1")), f"tcp/0.0.0.0/{PORT}")
        forbidden = [*everywhere(gateway, DOCKER0, UPLINK, ROUTER, METADATA), neighbour]
        for container in (primary("own-1"), companion_container("own-1", "web")):
            vantage = Vantage(host.network_namespace(container), gateway)
            assert vantage.reached(forbidden) == set()
            assert vantage.out_of_reach(everywhere(INTERNET)) == set()
        for name in ("own-1", "none-1"):
            sandboxes.delete_wait(name)
        assert left_over(engine) == []


# --- failures ------------------------------------------------------------------------------------


def failing(kind, make_companion, contract):
    """A companion that cannot become ready, and what the reason has to contain."""
    if kind == "no-image":
        return make_companion("bad", image=NOWHERE), {"bad", "no-such-image"}
    if kind == "exits":
        check = health_check(contract, "CMD", "false")
        command = ["sh", "-c", "echo no configuration >&2; exit 3"]
        words = {"bad", "code 3", "no configuration"}
        return make_companion("bad", command=command, healthcheck=check), words
    if kind == "unhealthy":
        return make_companion("bad", healthcheck=soon_unhealthy(contract)), {"bad", "healthy"}
    check = health_check(contract, "CMD", "true")
    hooks = ["echo first >> /tmp/hooks", "echo no table >&2; exit 4", "echo third >> /tmp/hooks"]
    words = {"bad", "post_start_on_primary", "2 of 3", "code 4", "no table"}
    return make_companion("bad", healthcheck=check, post_start_on_primary=hooks), words


def lacks(message, words):
    return {word for word in words if word not in message}


FAILURES = ("no-image", "exits", "unhealthy", "hook")


@pytest.mark.parametrize("kind", FAILURES)
def test_a_required_service_that_fails_fails_the_create(sandboxes, engine, contract, image, make_companion, kind):
    bad, words = failing(kind, make_companion, contract)
    good = web_server(contract, "good", image)
    sandboxes.create("fails-1", image, required_services=[good, bad], companion_containers=[make_companion("side")])
    events = sandboxes.follow("fails-1", lambda event: event.sandbox_state in (SANDBOX_FAILED, SANDBOX_READY))
    last = events[-1]
    assert last.sandbox_state == SANDBOX_FAILED
    assert lacks(last.sandbox_phase.error_message, words) == set(), last
    assert COMPANION_READY not in kinds(of_companion(events, "bad"))
    wait_until(lambda: left_over(engine) == [], "the removal of everything")
    assert statuses(sandboxes.get("fails-1"))["bad"].state != READY
    assert_one_history(sandboxes.delete_wait("fails-1"))


@pytest.mark.parametrize(
    ("role", "kind"),
    [("optional_services", kind) for kind in FAILURES[:3]] + [("companion_containers", kind) for kind in FAILURES],
)
def test_another_companion_that_fails_is_reported_once(
    daemon, sandboxes, engine, contract, image, make_companion, role, kind
):
    bad, words = failing(kind, make_companion, contract)
    good = web_server(contract, "good", image)
    sandboxes.create("goes-on", image, required_services=[good], **{role: [bad]})
    assert sandboxes.wait("goes-on", SANDBOX_READY)
    failed = reported(sandboxes, "goes-on", "bad", COMPANION_FAILED)[-1]
    assert lacks(failed.companion_container.error_message, words) == set(), failed
    shown = statuses(sandboxes.get("goes-on"))["bad"]
    assert shown.state in (FAILED, STARTING)  # it is restarted
    assert shown.error_code == failed.companion_container.error_code
    assert ("HOOK" in shown.error_code) == (kind == "hook")
    if kind == "hook":
        assert inside(engine, "goes-on", "cat", "/tmp/hooks") == "first"
    # The sandbox is as good as any other, and a later failure of the same outage is not reported.
    assert succeeds(sandboxes, "goes-on", *page_of("good")) == "good"
    assert daemon.agbox("sandbox", "get", "goes-on").stdout.count("companion=bad (") == 1
    events = sandboxes.delete_wait("goes-on")
    assert kinds(of_companion(events, "bad")) == [COMPANION_FAILED]
    assert_one_history(events)
    assert left_over(engine) == []


def test_one_that_ends_again_and_again_is_reported_once(sandboxes, engine, contract, image, make_companion):
    looping = make_companion("loop", command=["sh", "-c", "exit 5"], healthcheck=health_check(contract, "CMD", "false"))
    sandboxes.create_ready("loops-1", image, companion_containers=[looping])
    wait_until(lambda: statuses(sandboxes.get("loops-1"))["loop"].restart_count >= 3, "three restarts")
    assert "5" in statuses(sandboxes.get("loops-1"))["loop"].last_exit
    events = sandboxes.delete_wait("loops-1")
    assert kinds(of_companion(events, "loop")) == [COMPANION_FAILED]
    assert left_over(engine) == []


# --- many ----------------------------------------------------------------------------------------


def test_twelve_companions(sandboxes, engine, contract, image):
    names = [f"part-{number}" for number in range(12)]
    lists = {
        kind: [web_server(contract, name, image) for name in names[4 * number:4 * number + 4]]
        for number, kind in enumerate(LISTS)
    }
    sandboxes.create_ready("twelve", image, **lists)
    for name in names[4:]:
        reported(sandboxes, "twelve", name, COMPANION_READY)
    assert [shown.name for shown in sandboxes.get("twelve").companions] == names
    for name in names:
        assert succeeds(sandboxes, "twelve", *page_of(name)) == name
    events = sandboxes.delete_wait("twelve")
    assert sorted(event.companion_container.name for event in events
                  if event.event_type == COMPANION_READY) == sorted(names)
    assert left_over(engine) == []


@pytest.mark.parametrize("count", [6, pytest.param(20, marks=pytest.mark.long)])
def test_many_sandboxes_with_two_each(sandboxes, engine, contract, image, count):
    def life(number):
        name = f"crowd-{number}"
        sandboxes.create_ready(
            name, image,
            required_services=[web_server(contract, "web", image, post_start_on_primary=[f"echo {name} > /tmp/hook"])],
            companion_containers=[web_server(contract, "side", image)],
        )
        reported(sandboxes, name, "side", COMPANION_READY)
        pages = [succeeds(sandboxes, name, *page_of(companion)) for companion in ("web", "side")]
        hooked = succeeds(sandboxes, name, "cat", "/tmp/hook")
        assert_one_history(sandboxes.delete_wait(name))
        return pages, hooked

    with ThreadPoolExecutor(count) as pool:
        lives = list(pool.map(life, range(count)))
    assert lives == [(["web", "side"], f"crowd-{number}") for number in range(count)]
    assert left_over(engine) == []


def test_names_that_look_the_same_are_two_containers(sandboxes, engine, contract, image):
    """agbox-cc-team-a-b would be the name of both."""
    pairs = {"team-a": "b", "team": "a-b"}
    for sandbox_id, name in pairs.items():
        sandboxes.create_ready(sandbox_id, image, required_services=[web_server(contract, name, image)])
    for sandbox_id, name in pairs.items():
        assert succeeds(sandboxes, sandbox_id, *page_of(name)) == name
    sandboxes.delete_wait("team")
    assert succeeds(sandboxes, "team-a", *page_of("b")) == "b"
    sandboxes.stop_wait("team-a")
    sandboxes.resume_wait("team-a")
    assert succeeds(sandboxes, "team-a", *page_of("b")) == "b"
    sandboxes.delete_wait("team-a")
    assert left_over(engine) == []


# --- stop, resume, restart -----------------------------------------------------------------------


@pytest.mark.engines("20.10", "28")
def test_a_resume_awaits_health_again_and_runs_no_hook_again(sandboxes, engine, contract, image, make_companion):
    # Healthy a second after each start.
    slow = make_companion(
        "slow",
        command=["sh", "-c", "rm -f /healthy; sleep 1; touch /healthy; exec sleep 1000000"],
        healthcheck=health_check(contract, "CMD", "test", "-e", "/healthy"),
        post_start_on_primary=["echo hook >> /tmp/hooks"],
    )
    lost = make_companion("lost", image=NOWHERE)
    sandboxes.create_ready("rests-1", image, required_services=[slow], companion_containers=[lost])
    reported(sandboxes, "rests-1", "lost", COMPANION_FAILED)
    container = companion_container("rests-1", "slow")
    identity = inspect(engine, container)["Id"]
    stopped = sandboxes.stop_wait("rests-1")
    assert statuses(sandboxes.get("rests-1"))["slow"].state == STOPPED
    assert inspect(engine, container)["State"]["Running"] is False

    events = sandboxes.resume_wait("rests-1")[len(stopped):]
    assert kinds([event for event in events if event.companion_container.name != "lost"]) == [
        ACCEPTED, COMPANION_READY, 3,
    ]
    assert events[-1].sandbox_state == SANDBOX_READY
    assert of_companion(events, "slow")[0].sandbox_state == PENDING
    assert len(of_companion(events, "lost")) <= 1
    engine.docker("exec", container, "test", "-e", "/healthy")
    assert inspect(engine, container)["Id"] == identity
    assert inside(engine, "rests-1", "cat", "/tmp/hooks") == "hook"
    shown = statuses(sandboxes.get("rests-1"))
    assert (shown["slow"].state, shown["slow"].restart_count) == (READY, 0)
    assert shown["lost"].state != READY
    assert_one_history(sandboxes.delete_wait("rests-1"))
    assert left_over(engine) == []


@pytest.mark.parametrize("role", LISTS)
def test_one_that_is_killed_comes_back(sandboxes, engine, contract, image, role):
    server = web_server(contract, "web", image)
    sandboxes.create_ready("kill-1", image, **{role: [server]})
    reported(sandboxes, "kill-1", "web", COMPANION_READY)
    engine.docker("kill", companion_container("kill-1", "web"))
    events = reported(sandboxes, "kill-1", "web", COMPANION_READY, count=2)
    assert kinds(of_companion(events, "web")) == [COMPANION_READY, COMPANION_FAILED, COMPANION_READY]
    assert {event.sandbox_state for event in of_companion(events, "web")[1:]} == {SANDBOX_READY}
    assert succeeds(sandboxes, "kill-1", *page_of("web")) == "web"
    handle = sandboxes.get("kill-1")
    shown = statuses(handle)["web"]
    assert (shown.state, shown.restart_count, shown.error_code) == (READY, 1, "")
    assert "137" in shown.last_exit
    assert (handle.state, handle.restart_count) == (SANDBOX_READY, 0)
    events = sandboxes.delete_wait("kill-1")
    assert len(of_companion(events, "web")) == 3
    assert left_over(engine) == []


# --- crashes of the daemon -----------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["accepted", "starting", "ready", "all-ready", "stopped"])
def test_a_daemon_that_is_killed_loses_no_companion(daemon, engine, contract, image, make_companion, moment):
    """At some moment of a create, after it, and while it is stopped: a create starts over, and what is
    ready stays as it is."""
    slow = make_companion(
        "slow",
        command=["sh", "-c", "sleep 1; touch /healthy; exec sleep 1000000"],
        healthcheck=health_check(contract, "CMD", "test", "-e", "/healthy"),
        post_start_on_primary=["echo hook >> /tmp/hooks"],
    )
    side = web_server(contract, "side", image)
    with connected(daemon, contract) as sandboxes:
        sandboxes.create("crash-1", image, required_services=[slow], companion_containers=[side])
        if moment == "starting":
            wait_until(lambda: companion_container("crash-1", "slow") in str(engine.api.containers()), "its container")
        elif moment != "accepted":
            sandboxes.wait("crash-1", SANDBOX_READY)
        if moment in ("all-ready", "stopped"):
            reported(sandboxes, "crash-1", "side", COMPANION_READY)
        if moment == "stopped":
            sandboxes.stop_wait("crash-1")
        before = sandboxes.history("crash-1")
    daemon.kill()
    restarted(daemon)
    with connected(daemon, contract) as sandboxes:
        if moment == "stopped":
            sandboxes.resume_wait("crash-1")
        else:
            sandboxes.wait("crash-1", SANDBOX_READY)
        wait_until(lambda: statuses(sandboxes.get("crash-1"))["side"].state == READY, "the other companion")
        events = sandboxes.history("crash-1")
        assert events[:len(before)] == before
        assert COMPANION_FAILED not in kinds(events)
        shown = statuses(sandboxes.get("crash-1"))
        assert {name: (one.state, one.restart_count) for name, one in shown.items()} == {
            "slow": (READY, 0), "side": (READY, 0),
        }
        if moment == "all-ready":
            assert len(events) == len(before), "nothing happened to it"
        assert inside(engine, "crash-1", "cat", "/tmp/hooks") == "hook"
        assert succeeds(sandboxes, "crash-1", *page_of("side")) == "side"
        assert_one_history(sandboxes.delete_wait("crash-1"))
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.family(3)
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_create_with_companions_starts_over_after_a_crash_anywhere(armed, engine, contract, image, failpoint):
    daemon = started(armed(f"{failpoint}=kill"))
    web, side = (
        web_server(contract, name, image, post_start_on_primary=[f"echo {name} >> /tmp/{name}"])
        for name in ("web", "side")
    )
    with connected(daemon, contract) as sandboxes:
        with crashing(daemon):
            sandboxes.create("crash-2", image, required_services=[web], companion_containers=[side])
    with connected(restarted(daemon), contract) as sandboxes:
        sandboxes.wait("crash-2", SANDBOX_READY)
        wait_until(lambda: statuses(sandboxes.get("crash-2"))["side"].state == READY, "the other companion")
        for name in ("web", "side"):
            assert inside(engine, "crash-2", "cat", f"/tmp/{name}") == name, "each hook ran once"
            assert succeeds(sandboxes, "crash-2", *page_of(name)) == name
        events = sandboxes.delete_wait("crash-2")
        assert COMPANION_FAILED not in kinds(events)
        assert_one_history(events)
    assert left_over(engine) == []


@pytest.mark.engines("28")
@pytest.mark.parametrize("failpoint", RESTART_FAILPOINTS)
def test_a_restart_goes_on_after_a_crash(armed, engine, contract, image, failpoint):
    daemon = started(armed(f"{failpoint}=kill"))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("crash-3", image, optional_services=[web_server(contract, "web", image)])
        reported(sandboxes, "crash-3", "web", COMPANION_READY)
    with crashing(daemon):
        engine.docker("kill", companion_container("crash-3", "web"))
    with connected(restarted(daemon), contract) as sandboxes:
        events = reported(sandboxes, "crash-3", "web", COMPANION_READY, count=2)
        assert kinds(of_companion(events, "web")) == [COMPANION_READY, COMPANION_FAILED, COMPANION_READY]
        assert statuses(sandboxes.get("crash-3"))["web"].restart_count == 1
        sandboxes.delete_wait("crash-3")
    assert left_over(engine) == []


def test_one_that_ends_while_the_daemon_is_down_is_restarted(daemon, engine, contract, image):
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("away-1", image, companion_containers=[web_server(contract, "web", image)])
        reported(sandboxes, "away-1", "web", COMPANION_READY)
    daemon.kill()
    engine.docker("kill", companion_container("away-1", "web"))
    with connected(restarted(daemon), contract) as sandboxes:
        events = reported(sandboxes, "away-1", "web", COMPANION_READY, count=2)
        assert kinds(of_companion(events, "web")) == [COMPANION_READY, COMPANION_FAILED, COMPANION_READY]
        assert statuses(sandboxes.get("away-1"))["web"].restart_count == 1
        sandboxes.delete_wait("away-1")
    assert left_over(engine) == []


def test_a_delete_does_not_wait_for_a_companion_that_starts(sandboxes, engine, contract, image, make_companion):
    never = make_companion("never", healthcheck=health_check(contract, "CMD", "false", retries=1000))
    sandboxes.create("delete-1", image, required_services=[never])
    wait_until(lambda: companion_container("delete-1", "never") in str(engine.api.containers()), "its container")
    events = sandboxes.delete_wait("delete-1")
    assert of_companion(events, "never") == []
    assert left_over(engine) == []
