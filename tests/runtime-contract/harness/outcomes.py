"""The box under test: its manifest, how it is started, what it answers and returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbox.plan.model import Plan

NAME = "agentbox-rc"
API_PORT = 19090
METRICS_PORT = 19091
MANIFEST = f"""\
meta = {{ schema_version = 1, name = "{NAME}" }}
api = {{ port = {API_PORT} }}
observability = {{ metrics_port = {METRICS_PORT} }}
adapters = {{ pods = {{ use = "local-fs" }}, memory = {{ use = "local-sqlite" }} }}
"""


@dataclass(frozen=True)
class Answer:
    """One complete HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Ran:
    """A program that ended."""

    code: int
    out: str
    err: str


@dataclass
class Options:
    """What a test changes about the box before it starts."""

    manifest: str = MANIFEST
    mounted: str = (
        ""  # a manifest that is mounted though the box was rendered from `manifest`; "" = the same
    )
    hooks: dict[str, str] = field(
        default_factory=dict
    )  # AGENTBOX_TEST_*; picks the image with test hooks
    test_hooks: bool = False
    strict: bool = False
    secrets: dict[str, str] = field(default_factory=dict)
    alter: Callable[[Plan], Plan] | None = (
        None  # another plan than the manifest's is baked into the image
    )
    small_workspace: bool = False  # /workspace is a file system of a few MiB
    # Containers only:
    service: dict[str, Any] = field(
        default_factory=dict
    )  # merged by compose over the rendered service
    volumes: dict[str, Any] = field(default_factory=dict)  # the same for the compose file's volumes
    files: dict[str, bytes] = field(default_factory=dict)  # laid over files of the image
    edit: Callable[[str], str] | None = None  # of the rendered compose text
    image_ref: str = ""  # AGENTBOX_IMAGE_REF in the operator's environment
