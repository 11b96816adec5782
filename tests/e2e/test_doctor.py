# SPDX-License-Identifier: Apache-2.0
"""agbox doctor on real engines: what it says of a healthy machine, and of machines that are broken in
one way each. If it names a command as the fix, the command is run, and fixes it."""

import contextlib
import json
import shutil
import signal
from pathlib import Path

import pytest
from support.execs import Execs
from support.images import make_image
from support.process import LoggedProcess, base_environment, run
from support.sandboxes import (
    CONFIG,
    LABEL,
    connected,
    inspect,
    primary,
    restarted,
    started,
    wait_until,
)

ECHO_SERVER = Path(__file__).resolve().parents[1] / "integration" / "isolation" / "echo_server.py"
INTERNET, PORT = "203.0.113.10", 7001
OK, WARNING, BROKEN, UNKNOWN = (
    f"FINDING_VERDICT_{word}" for word in ("OK", "WARNING", "BROKEN", "UNKNOWN")
)
EVERY_CHECK = {
    "address-pool",
    "capability",
    "disk",
    "engine",
    "firewall",
    "guest-program",
    "images",
    "ip-forward",
    "isolation",
    "layer-quota",
    "live-restore",
    "lock",
    "other-firewalls",
    "resolvers",
    "store",
    "unknown-primaries",
    "user-limits",
}
FOREIGN_CHAIN = "add table inet foreign\nadd chain inet foreign forward { %s }\n"
DROPS = "type filter hook forward priority 10; policy drop;"


class Diagnosis:
    """What `agbox doctor --json` said, and how it ended."""

    def __init__(self, daemon):
        answer = daemon.agbox("doctor", "--json", timeout=60)
        assert answer.stderr == ""
        self.code = answer.returncode
        self.findings = json.loads(answer.stdout)["findings"]
        assert all(finding["sentence"] for finding in self.findings)
        assert (self.code == 1) == bool(self.checks(BROKEN)), "only what is broken is a failure"

    def checks(self, verdict):
        return {finding["check"] for finding in self.findings if finding["verdict"] == verdict}

    def of(self, check):
        found = [finding for finding in self.findings if finding["check"] == check]
        assert len(found) == 1, found
        return found[0]

    def assert_only(self, check, verdict, words):
        """Nothing is broken but this, and it says so with a remedy; a warning breaks nothing."""
        assert self.checks(BROKEN) == ({check} if verdict == BROKEN else set()), self.findings
        finding = self.of(check)
        assert finding["verdict"] == verdict
        assert words in finding["sentence"]
        assert finding["remedy"]
        return finding["remedy"]


@pytest.fixture
def image(engine):
    return make_image(engine.api, "doctor:1")


@pytest.fixture
def make_started(make_daemon, daemon_user):
    def make(engine, failpoints=""):
        environment = {"AGBOX_FAILPOINTS": failpoints}
        return started(
            make_daemon(user=daemon_user, engine=engine, config=CONFIG, environment=environment)
        )

    return make


def test_a_healthy_machine_has_nothing_broken(make_started, engine, contract, image):
    daemon = make_started(engine)
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        diagnosis = Diagnosis(daemon)
        assert diagnosis.code == 0
        assert {finding["check"] for finding in diagnosis.findings} == EVERY_CHECK
        # Each of them is known of a private engine on a disk of the user who runs the tests.
        assert diagnosis.checks(WARNING) <= {"disk", "images", "layer-quota", "live-restore"}
        assert not diagnosis.checks(UNKNOWN)
        version = engine.api.call("GET", "/version").json()["Version"]
        assert f"Docker {version} (API " in diagnosis.of("engine")["sentence"]
        assert diagnosis.of("isolation")["sentence"] == "verified now for 1 running sandbox"
        for table in daemon.firewall_tables():
            assert table in diagnosis.of("firewall")["sentence"]
        text = daemon.agbox("doctor")
        assert (text.returncode, text.stderr) == (0, "")
        assert "\nok       ip-forward         this host forwards packets" in text.stdout
        assert "\n         fix: set \"live-restore\": true in " in text.stdout
        sandboxes.delete_wait("box-1")


def test_live_restore(make_started, make_engine, engine_name):
    engine = make_engine(engine_name, live_restore=True)
    daemon = make_started(engine)
    assert Diagnosis(daemon).of("live-restore")["verdict"] == OK
    assert daemon.stop() == 0


def test_a_missing_table_and_what_it_means_for_a_sandbox(make_started, engine, contract, image):
    """While nobody puts it back."""
    daemon = make_started(engine, "isolation.watch=error")
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        plain = next(name for name in daemon.firewall_tables() if name.startswith("inet"))
        engine.world.run("nft", "delete", "table", *plain.split())
        diagnosis = Diagnosis(daemon)
        assert diagnosis.checks(BROKEN) == {"firewall", "isolation"}
        assert f"table {plain} is missing" in diagnosis.of("firewall")["sentence"]
        assert diagnosis.of("firewall")["remedy"].endswith("systemctl --user restart agboxd")
        assert diagnosis.of("isolation")["sentence"].startswith("sandbox box-1: the sandbox firewall")
    assert daemon.stop() == 0
    restarted(daemon)  # as the remedy says
    with connected(daemon, contract) as sandboxes:
        # It was paused for what was found, and that is over once it is verified again.
        wait_until(lambda: not sandboxes.get("box-1").isolation_problem, "the isolation holds again")
        diagnosis = Diagnosis(daemon)
        assert diagnosis.code == 0, diagnosis.findings
        sandboxes.delete_wait("box-1")


def test_a_sandbox_that_does_not_answer_is_unknown_and_not_broken(
    make_started, engine, contract, image
):
    daemon = make_started(engine)
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        engine.docker("pause", primary("box-1"))
        diagnosis = Diagnosis(daemon)
        assert diagnosis.code == 0
        assert diagnosis.of("isolation")["verdict"] == UNKNOWN
        assert diagnosis.of("isolation")["sentence"].startswith("sandbox box-1: its rules are in place")
        engine.docker("unpause", primary("box-1"))
        assert Diagnosis(daemon).of("isolation")["verdict"] == OK
        sandboxes.delete_wait("box-1")


def test_a_table_that_was_put_back_is_told(make_started, engine):
    daemon = make_started(engine)
    plain = next(name for name in daemon.firewall_tables() if name.startswith("inet"))
    engine.world.run("nft", "delete", "table", *plain.split())
    daemon.wait_for_message("sandbox firewall restored after a change by another process")
    diagnosis = Diagnosis(daemon)
    assert diagnosis.of("firewall")["verdict"] == OK
    diagnosis.assert_only("firewall-repairs", WARNING, f"table {plain} is missing, changed by 'nft'")


@pytest.fixture
def own_engine(make_engine, engine_name):
    return make_engine(engine_name)


def as_root(engine, remedy):
    """Runs the command that the doctor names, where the engine's network is."""
    assert "sudo " in remedy
    enter = ["nsenter", f"--net={engine.network_namespace}", "--"]
    run(*enter, "sh", "-c", remedy.replace("sudo ", ""))


def test_a_host_that_forwards_nothing(make_started, own_engine):
    daemon = make_started(own_engine)
    own_engine.world.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_forward")
    remedy = Diagnosis(daemon).assert_only("ip-forward", BROKEN, "net.ipv4.ip_forward is 0")
    as_root(own_engine, remedy)
    assert Diagnosis(daemon).code == 0


def load_rules(engine, text):
    engine.world.run("nft", "-f", "-", input=text)


@contextlib.contextmanager
def internet(engine):
    """A place beyond the engine's uplink that says what it hears."""
    outside = engine.connect_outside()
    outside.run("ip", "address", "add", f"{INTERNET}/32", "dev", "lo")
    enter = ["nsenter", f"--net={outside.network_namespace}", "--"]
    place = f"tcp/0.0.0.0/{PORT}"
    server = LoggedProcess(
        "internet", [*enter, "/usr/bin/python3", str(ECHO_SERVER), place], base_environment()
    )
    try:
        server.wait_for_line("ready".__eq__, "the listener", timeout=20)
        yield
    finally:
        server.kill()


def reaches_internet(sandboxes, sandbox_id, patience=20):
    ask = f"test \"$(echo hello | timeout {patience} nc {INTERNET} {PORT})\" = hello"
    return Execs(sandboxes, sandbox_id).run("sh", "-c", ask).exit_code == 0


def test_another_firewalls_drop_policy(make_started, own_engine, contract):
    """It really cuts the sandbox off, and the remedy really fixes it."""
    image = make_image(own_engine.api, "doctor:1")
    daemon = make_started(own_engine)
    with connected(daemon, contract) as sandboxes, internet(own_engine):
        sandboxes.create_ready("box-1", image)
        assert Diagnosis(daemon).of("other-firewalls")["verdict"] == OK
        assert reaches_internet(sandboxes, "box-1")
        load_rules(own_engine, FOREIGN_CHAIN % DROPS)
        remedy = Diagnosis(daemon).assert_only(
            "other-firewalls", BROKEN, "chain forward of table inet foreign has the policy drop"
        )
        assert not reaches_internet(sandboxes, "box-1", patience=1)
        as_root(own_engine, remedy)
        assert Diagnosis(daemon).of("other-firewalls")["verdict"] == OK
        assert reaches_internet(sandboxes, "box-1")
        # One that lets others through may mean sandboxes too; nobody can say.
        own_engine.world.run("nft", "flush", "chain", "inet", "foreign", "forward")
        load_rules(own_engine, "add rule inet foreign forward iifname x accept\n")
        Diagnosis(daemon).assert_only("other-firewalls", WARNING, "no rule of it is for sandboxes")
        sandboxes.delete_wait("box-1")


def test_the_drop_policy_of_the_engines_own_chain_is_fine(make_started, own_engine):
    """As most hosts have it: an engine that uses iptables accepts its containers there."""
    own_engine.world.run("iptables", "-P", "FORWARD", "DROP")
    daemon = make_started(own_engine)
    assert Diagnosis(daemon).of("other-firewalls")["verdict"] == OK


@pytest.mark.engines("29")
def test_a_drop_policy_of_iptables_beside_an_engine_that_uses_nftables(
    make_engine, engine_name, make_started
):
    """Under its other backend the engine accepts its containers in that chain; here nobody does."""
    engine = make_engine(engine_name, arguments=("--firewall-backend=nftables",))
    daemon = make_started(engine)
    assert Diagnosis(daemon).of("other-firewalls")["verdict"] == OK
    engine.world.run("iptables", "-P", "FORWARD", "DROP")
    words = "chain FORWARD of table ip filter has the policy drop"
    remedy = Diagnosis(daemon).assert_only("other-firewalls", BROKEN, words)
    as_root(engine, remedy)
    assert Diagnosis(daemon).of("other-firewalls")["verdict"] == OK


def test_a_container_with_our_label_that_no_sandbox_knows(make_started, engine, contract, image):
    daemon = make_started(engine)
    with connected(daemon, contract) as sandboxes:
        answer = sandboxes.stub.Ping(sandboxes.service.PingRequest(), timeout=10)
    labels = {"instance": answer.instance_id, "sandbox-id": "lost-1", "component": "primary"}
    flags = [part for key, value in labels.items() for part in ("--label", f"{LABEL}.{key}={value}")]
    engine.docker("create", "--name", primary("lost-1"), *flags, image, "true")
    remedy = Diagnosis(daemon).assert_only(
        "unknown-primaries", WARNING, f"container {primary('lost-1')} carries our label"
    )
    assert inspect(engine, primary("lost-1"))["State"]["Status"] == "created", "it is left alone"
    assert remedy.startswith(f"docker rm -f {primary('lost-1')}")
    engine.docker("rm", "-f", primary("lost-1"))
    assert Diagnosis(daemon).of("unknown-primaries")["verdict"] == OK


def test_an_engine_that_is_gone_or_hangs(make_started, own_engine):
    daemon = make_started(own_engine)
    own_engine.freeze()
    diagnosis = Diagnosis(daemon)
    own_engine.thaw()
    assert diagnosis.checks(BROKEN) == {"engine"}
    own_engine.stop()
    diagnosis = Diagnosis(daemon)
    assert diagnosis.checks(BROKEN) == {"engine"}
    assert diagnosis.of("engine")["sentence"].startswith("the Docker Engine is unreachable: ")
    assert diagnosis.checks(UNKNOWN) == {"images", "layer-quota", "live-restore", "unknown-primaries"}
    assert diagnosis.of("firewall")["verdict"] == OK
    own_engine.start()
    assert Diagnosis(daemon).code == 0


def test_a_lock_that_somebody_removed(make_started, engine):
    daemon = make_started(engine)
    (daemon.runtime_directory / "agbox" / "agboxd.lock").unlink()
    Diagnosis(daemon).assert_only("lock", BROKEN, "a second daemon could start")


def test_a_guest_program_that_somebody_removed(make_started, engine):
    daemon = make_started(engine)
    program = Path(Diagnosis(daemon).of("guest-program")["sentence"].split()[0])
    program.unlink()
    Diagnosis(daemon).assert_only("guest-program", BROKEN, f"so none can start: {program}")
    assert daemon.stop() == 0
    restarted(daemon)  # as the remedy says
    assert Diagnosis(daemon).code == 0


def test_a_pool_without_a_free_network(make_daemon, daemon_user, engine, contract, image):
    config = f'{CONFIG}address_pool = "10.202.0.0/28"\n'
    daemon = started(make_daemon(user=daemon_user, engine=engine, config=config))
    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        remedy = Diagnosis(daemon).assert_only(
            "address-pool", BROKEN, "0 of 1 networks for sandboxes are free in 10.202.0.0/28"
        )
        assert remedy.startswith("delete sandboxes that are no longer needed")
        sandboxes.delete_wait("box-1")
    assert Diagnosis(daemon).of("address-pool")["verdict"] == OK


def test_a_host_whose_resolvers_are_on_its_loopback(make_daemon, daemon_user, engine, directory):
    resolv_conf, own_run = directory / "resolv.conf", directory / "run"
    resolv_conf.write_text("nameserver 127.0.0.53\n")
    own_run.mkdir()
    mounts = {"/etc/resolv.conf": resolv_conf, "/run": own_run}
    daemon = started(make_daemon(user=daemon_user, engine=engine, config="", mounts=mounts))
    remedy = Diagnosis(daemon).assert_only("resolvers", BROKEN, "are all on loopback or IPv6")
    assert remedy.startswith("set network.dns in config.toml, then: ")
    assert daemon.stop() == 0
    daemon.write_config(CONFIG)
    started(daemon)
    assert Diagnosis(daemon).of("resolvers")["sentence"] == "new sandboxes use 192.0.2.53 (network.dns)"


def test_an_image_that_is_gone(make_started, engine, contract):
    """From under a sandbox that was made of it."""
    daemon, image = make_started(engine), make_image(engine.api, "doctor-gone:1")

    def of_image():
        return [found for found in Diagnosis(daemon).findings if image in found["sentence"]]

    with connected(daemon, contract) as sandboxes:
        sandboxes.create_ready("box-1", image)
        assert of_image() == []
        engine.docker("rmi", "--force", image)
        [finding] = of_image()
        assert (finding["check"], finding["verdict"]) == ("images", WARNING)
        assert "though a sandbox was made of it" in finding["sentence"]
        assert finding["remedy"] == f"docker pull {image}"
        make_image(engine.api, image)  # as a pull does
        assert of_image() == []
        sandboxes.delete_wait("box-1")


def test_a_daemon_that_is_not_started(make_daemon, daemon_user, engine):
    daemon = make_daemon(user=daemon_user, engine=engine, config=CONFIG)
    diagnosis = Diagnosis(daemon)
    remedy = diagnosis.assert_only("daemon", BROKEN, f"no process listens on {daemon.socket}")
    assert remedy == f"systemctl --user start agboxd, or run: {daemon.bin_dir / 'agboxd'}"
    version = engine.api.call("GET", "/version").json()["Version"]
    assert f"Docker/{version} (linux) (API " in diagnosis.of("engine")["sentence"]
    assert diagnosis.of("lock")["verdict"] == OK
    text = daemon.agbox("doctor")
    assert (text.returncode, text.stderr) == (1, "")
    assert text.stdout.startswith("broken   daemon         agboxd is not running: ")
    started(daemon)
    assert Diagnosis(daemon).code == 0


def test_a_daemon_that_hangs_is_named(make_started, engine):
    daemon = make_started(engine)
    daemon.signal(signal.SIGSTOP)
    diagnosis = Diagnosis(daemon)
    daemon.signal(signal.SIGCONT)
    remedy = diagnosis.assert_only("daemon", BROKEN, f"process {daemon.pid} is an agboxd")
    assert f"kill {daemon.pid};" in remedy


def test_a_program_without_the_capability(make_daemon, test_user, engine, directory):
    """As a user; the copy has no file capability, and neither has the user."""
    daemon = make_daemon(user=test_user, engine=engine)
    copies = directory / "bin"
    copies.mkdir()
    for program in ("agbox", "agboxd"):
        shutil.copy(daemon.bin_dir / program, copies / program)
    test_user.share(copies)
    daemon.bin_dir = copies
    diagnosis = Diagnosis(daemon)
    assert diagnosis.checks(BROKEN) == {"capability", "daemon"}
    assert diagnosis.of("capability")["remedy"] == f"sudo setcap cap_net_admin+ep {copies / 'agboxd'}"
    run("setcap", "cap_net_admin+ep", copies / "agboxd")
    assert Diagnosis(daemon).checks(BROKEN) == {"daemon"}


def test_a_shutdown_does_not_wait_for_a_diagnosis_of_an_engine_that_hangs(
    make_started, own_engine, contract
):
    daemon = make_started(own_engine)
    own_engine.freeze()
    with connected(daemon, contract) as sandboxes:
        call = sandboxes.stub.Diagnose.future(sandboxes.service.DiagnoseRequest(), timeout=60)
        daemon.wait_for_message("gRPC Diagnose")
        assert daemon.stop(timeout=10) == 0
        assert "shutting down" in call.exception().details()
    own_engine.thaw()
