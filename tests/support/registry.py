# SPDX-License-Identifier: Apache-2.0
"""A private registry (Debian's docker-registry) on loopback, for real pushes and pulls.

It runs in the network namespace of its engine: every engine trusts a registry on its loopback without
TLS, and nothing else can reach it.
"""

import base64
import ctypes
import json
import re
import secrets
import shutil
from pathlib import Path

from support.engine_api import EngineApi
from support.images import Image, make_image, raise_stream_error
from support.process import LoggedProcess, base_environment


def _bcrypt(password: str) -> str:
    """The only format that the registry accepts. Uses libcrypt, because Python's module is deprecated."""
    libcrypt = ctypes.CDLL("libcrypt.so.1")
    libcrypt.crypt.restype = ctypes.c_char_p
    salt = "$2b$05$" + secrets.token_hex(11)
    return libcrypt.crypt(password.encode(), salt.encode()).decode()


class Registry:
    """A running registry. `credentials` is the required user name and password; port 0 is any free
    port."""

    def __init__(
        self,
        directory: Path,
        network_namespace: str | None = None,
        credentials: tuple[str, str] | None = None,
        port: int = 0,
    ):
        program = shutil.which("docker-registry", path=base_environment()["PATH"])
        if program is None:
            raise RuntimeError(
                "docker-registry is not there; install it with: apt-get install docker-registry"
            )
        self.directory = directory
        self.credentials = credentials
        self._port = port
        config = directory / "registry.json"
        config.write_text(json.dumps(self._config()))  # JSON is YAML too
        enter = ["nsenter", f"--net={network_namespace}", "--"] if network_namespace else []
        self._process = LoggedProcess(
            "registry", [*enter, program, "serve", str(config)], base_environment()
        )
        try:
            self.address = self._wait_listening()
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> "Registry":
        return self

    def __exit__(self, *_) -> None:
        self.end()

    def push(self, api: EngineApi, name: str, image: Image = Image()) -> str:
        """Creates an image, pushes it as `name` and removes it from the engine. Returns the reference to
        pull."""
        reference = make_image(api, f"{self.address}/{name}", image)
        repository, _, tag = reference.rpartition(":")
        answer = api.call(
            "POST", f"/images/{repository}/push", query={"tag": tag}, headers=self._authentication()
        )
        raise_stream_error(f"push {reference}", answer.body)
        api.call("DELETE", f"/images/{reference}")
        return reference

    def pull(self, api: EngineApi, reference: str, with_credentials: bool = True) -> None:
        repository, _, tag = reference.rpartition(":")
        headers = self._authentication() if with_credentials else {}
        answer = api.call(
            "POST", "/images/create", query={"fromImage": repository, "tag": tag}, headers=headers
        )
        raise_stream_error(f"pull {reference}", answer.body)

    def lose_layers(self) -> None:
        """The registry keeps its manifests and loses the layers: pulls start and then fail."""
        manifests = {link.read_text().partition(":")[2] for link in self._links("_manifests")}
        for blob in (self.directory / "data").glob("docker/registry/v2/blobs/sha256/*/*/data"):
            if blob.parent.name not in manifests:
                blob.unlink()

    def freeze(self) -> None:
        """Pulls hang until thaw()."""
        self._process.freeze()

    def thaw(self) -> None:
        self._process.thaw()

    def log(self) -> list[str]:
        return self._process.lines()

    def end(self) -> None:
        if self._process.returncode() is None:
            self._process.kill()

    def _wait_listening(self) -> str:
        line = self._process.wait_for_line(
            lambda text: "listening on 127.0.0.1:" in text, "its port", timeout=20
        )
        return re.search(r"listening on (127\.0\.0\.1:\d+)", line).group(1)

    def _config(self) -> dict:
        config = {
            "version": 0.1,
            "log": {"level": "info"},
            "storage": {
                "filesystem": {"rootdirectory": f"{self.directory}/data"},
                "delete": {"enabled": True},
                # The loss of layers must be noticed immediately.
                "maintenance": {"uploadpurging": {"enabled": False}},
            },
            "http": {"addr": f"127.0.0.1:{self._port}"},
        }
        if self.credentials:
            passwords = self.directory / "htpasswd"
            user, password = self.credentials
            passwords.write_text(f"{user}:{_bcrypt(password)}\n")
            config["auth"] = {"htpasswd": {"realm": "tests", "path": str(passwords)}}
        return config

    def _authentication(self) -> dict[str, str]:
        """The header with credentials for the engine."""
        user, password = self.credentials or ("", "")
        content = {"username": user, "password": password, "serveraddress": self.address}
        return {"X-Registry-Auth": base64.urlsafe_b64encode(json.dumps(content).encode()).decode()}

    def _links(self, kind: str) -> list[Path]:
        return list(
            (self.directory / "data").glob(f"docker/registry/v2/repositories/**/{kind}/**/link")
        )
