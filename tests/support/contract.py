# SPDX-License-Identifier: Apache-2.0
"""The client contract as Python modules, generated from api/ when the tests run, independent of any SDK."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from support.process import run

REPOSITORY = Path(__file__).resolve().parents[2]
_PLUGIN = "/usr/bin/grpc_python_plugin"


class Contract:
    """The generated modules: contract.service.PingRequest, contract.stub(channel).Ping(…)."""

    def __init__(self, directory: Path):
        api = REPOSITORY / "api"
        protos = sorted((api / "agbox" / "v1").glob("*.proto")) + sorted(
            (api / "agbox" / "rpc").glob("*.proto")
        )
        run(
            *(
                "protoc",
                f"--proto_path={api}",
                f"--python_out={directory}",
                f"--grpc_python_out={directory}",
            ),
            *(f"--plugin=protoc-gen-grpc_python={_PLUGIN}", *protos),
        )
        sys.path.insert(0, str(directory))
        try:
            self.service = _module("agbox.v1.service_pb2")
            self.spec = _module("agbox.v1.spec_pb2")
            self.sandbox = _module("agbox.v1.sandbox_pb2")
            self.event = _module("agbox.v1.event_pb2")
            self.exec = _module("agbox.v1.exec_pb2")
            self.diagnosis = _module("agbox.v1.diagnosis_pb2")
            self.files = _module("agbox.v1.files_pb2")
            self.error_details = _module("agbox.rpc.error_details_pb2")
            self._grpc = _module("agbox.v1.service_pb2_grpc")
        finally:
            sys.path.remove(str(directory))

    def stub(self, channel):
        return self._grpc.SandboxServiceStub(channel)


def _module(name: str) -> ModuleType:
    return importlib.import_module(name)
