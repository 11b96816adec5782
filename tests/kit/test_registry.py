# SPDX-License-Identifier: Apache-2.0
"""Real pushes and pulls against the private registry, and pulls that fail."""

from collections.abc import Iterator

import pytest

from support.engine_api import EngineRefused
from support.images import Image


@pytest.fixture(autouse=True)
def no_image_stays(engine) -> Iterator[None]:
    yield
    for image in engine.api.call("GET", "/images/json").json():
        for tag in image["RepoTags"] or []:
            if tag.startswith("127.0.0.1:"):
                engine.api.call("DELETE", f"/images/{tag}")


def test_an_image_is_pushed_pulled_and_run(engine, make_registry):
    registry = make_registry(engine)
    reference = registry.push(engine.api, "small:1", Image(command=["echo", "pulled"]))
    assert engine.docker("image", "inspect", reference, check=False).returncode != 0
    registry.pull(engine.api, reference)
    assert engine.docker("run", "--rm", reference).stdout == "pulled\n"


def test_with_credentials_only_who_has_them_gets_the_image(engine, make_registry):
    registry = make_registry(engine, credentials=("someone", "open sesame"))
    reference = registry.push(engine.api, "private:1", Image(command=["true"]))
    with pytest.raises(
        (EngineRefused, RuntimeError),
        match="(?i)no basic auth|unauthorized|authentication required",
    ):
        registry.pull(engine.api, reference, with_credentials=False)
    registry.pull(engine.api, reference)
    assert engine.docker("run", "--rm", reference).returncode == 0


def test_an_image_that_is_not_there_cannot_be_pulled(engine, make_registry):
    registry = make_registry(engine)
    with pytest.raises((EngineRefused, RuntimeError), match="(?i)not found|unknown"):
        registry.pull(engine.api, f"{registry.address}/nothing:1")


def test_a_pull_fails_on_the_way_when_layers_are_lost(engine, make_registry):
    registry = make_registry(engine)
    reference = registry.push(engine.api, "broken:1", Image(files={"/unique": b"of this test"}))
    registry.lose_layers()
    with pytest.raises((EngineRefused, RuntimeError), match="(?i)unknown|not found|unexpected"):
        registry.pull(engine.api, reference)


def test_a_frozen_registry_makes_a_pull_hang(engine, make_registry):
    registry = make_registry(engine)
    reference = registry.push(engine.api, "slow:1", Image(files={"/slow": b"of this test"}))
    repository, _, tag = reference.rpartition(":")
    registry.freeze()
    with pytest.raises(TimeoutError):
        engine.api.call(
            "POST", "/images/create", query={"fromImage": repository, "tag": tag}, timeout=0.5
        )
    registry.thaw()
    registry.pull(engine.api, reference)
