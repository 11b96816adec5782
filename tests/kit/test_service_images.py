# SPDX-License-Identifier: Apache-2.0
"""The servers that tests of services use: they work with the capabilities of a sandbox's containers."""

import contextlib

import pytest
from support.sandboxes import wait_until
from support.service_images import CLIENT, POSTGRES, POSTGRES_PROBE, REDIS, REDIS_PROBE, make_service_images

pytestmark = pytest.mark.xdist_group("servers")
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "KILL", "SYS_CHROOT"]
SQL = ("psql", "-h", "db", "-U", "postgres", "-qAtc")


@pytest.fixture
def network(engine):
    engine.api.call("POST", "/networks/create", json_body={"Name": "services"})
    yield "services"
    engine.api.call("DELETE", "/networks/services")


@pytest.fixture
def run(engine, network):
    """run("db", image): a container on the network, with a healthcheck if there is one."""
    with contextlib.ExitStack() as stack:

        def start(name, image, probe=None, command=None):
            body = {
                "Image": image,
                "HostConfig": {"CapDrop": ["ALL"], "CapAdd": CAPABILITIES, "Init": True, "NetworkMode": network},
                "NetworkingConfig": {"EndpointsConfig": {network: {"Aliases": [name]}}},
            }
            if probe:
                body["Healthcheck"] = {"Test": probe, "Interval": 200_000_000, "Retries": 1000}
            if command:
                body["Cmd"] = command
            engine.api.call("POST", "/containers/create", query={"name": name}, json_body=body)
            stack.callback(engine.api.call, "DELETE", f"/containers/{name}", query={"force": "true", "v": "true"})
            engine.api.call("POST", f"/containers/{name}/start")

        yield start


def health(engine, name):
    return engine.api.call("GET", f"/containers/{name}/json").json()["State"]["Health"]["Status"]


@pytest.mark.engines("20.10", "28")
def test_both_servers_answer_their_clients(engine, run, say):
    make_service_images(engine.api, say)
    run("db", POSTGRES, POSTGRES_PROBE)
    run("cache", REDIS, REDIS_PROBE)
    run("client", CLIENT, command=["sleep", "1000000"])
    for name in ("db", "cache"):
        wait_until(lambda name=name: health(engine, name) == "healthy", f"{name} is healthy")

    def inside(*command):
        return engine.docker("exec", "client", *command).stdout.strip()

    inside(*SQL, "create table words (word text)")
    inside(*SQL, "insert into words values ('kept')")
    assert inside("redis-cli", "-h", "cache", "set", "key", "value") == "OK"
    assert inside("redis-cli", "-h", "cache", "get", "key") == "value"
    # A server that was killed has its data when it starts again.
    engine.docker("kill", "db")
    engine.docker("start", "db")
    wait_until(lambda: health(engine, "db") == "healthy", "db is healthy again")
    assert inside(*SQL, "select * from words") == "kept"
    # As the image that everyone knows, it executes other arguments.
    run("other", POSTGRES, command=["sleep", "1000000"])
    assert engine.docker("exec", "other", "psql", "--version").stdout.startswith("psql (PostgreSQL) 15")


def test_they_are_made_once_per_engine(engine, say):
    make_service_images(engine.api, say)
    before = {image: _identity(engine, image) for image in (CLIENT, POSTGRES, REDIS)}
    make_service_images(engine.api, say)
    assert {image: _identity(engine, image) for image in before} == before


def _identity(engine, image):
    return engine.api.call("GET", f"/images/{image}/json").json()["Id"]
