# SPDX-License-Identifier: Apache-2.0
"""Compares what came with what the table expects."""

from __future__ import annotations

import base64
from typing import Any

Json = Any


def difference(expected: Json, actual: Json, path: str = "") -> str:
    """Empty if it matches."""
    if expected == "*":
        return "" if actual not in (None, "", [], {}) else f"{path}: missing or empty"
    if expected is None:
        return "" if actual in (None, "", [], {}) else f"{path}: {actual!r}, expected nothing"
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return f"{path}: {actual!r}, expected an object"
        found = (_key_difference(key, value, actual, path) for key, value in expected.items())
        return next(filter(None, found), "")
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{path}: {actual!r}, expected {len(expected)} elements"
        found = (
            difference(e, a, f"{path}[{i}]") for i, (e, a) in enumerate(zip(expected, actual, strict=True))
        )
        return next(filter(None, found), "")
    return "" if expected == actual else f"{path}: {actual!r}, expected {expected!r}"


def _key_difference(key: str, value: Json, actual: Json, path: str) -> str:
    name = key.removesuffix("_contains")
    if name == key:
        return difference(value, actual.get(key), f"{path}.{key}")
    text = str(actual.get(name))
    return "" if value in text else f"{path}.{name}: {text!r}, expected {value!r} in it"


def at(value: Json, path: str) -> Json:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def stream_difference(expected: Json, messages: list[Json]) -> str:
    for wanted in expected.get("contains", []):
        if all(difference(wanted, message) for message in messages):
            return f"no message matches {wanted}: {messages[-5:]}"
    if joined := expected.get("joined"):
        pieces = [at(message, joined["field"]) for message in messages]
        text = b"".join(base64.b64decode(piece) for piece in pieces if piece).decode()
        return difference(joined["text"], text, joined["field"])
    if "until" in expected and (not messages or difference(expected["until"], messages[-1])):
        return f"ended before {expected['until']}: {messages[-5:]}"
    return ""


def with_variables(value: Json, variables: dict[str, str]) -> Json:
    if isinstance(value, str):
        for name, text in variables.items():
            value = value.replace("${" + name + "}", text)
        return value
    if isinstance(value, list):
        return [with_variables(one, variables) for one in value]
    if isinstance(value, dict):
        return {key: with_variables(one, variables) for key, one in value.items()}
    return value
