"""The suite of `doctor --attack` against a container of the contract, with a provider of models
that records its requests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentbox.core.paths import CHECKOUT, Paths
from agentbox.host.doctor.attack_runner import run_attack, target_info
from agentbox.host.doctor.check_result import CheckResult
from agentbox.sandbox.attacks.case import AttackCase
from agentbox.sandbox.attacks.catalogue import CASES
from harness.agents import client_of
from harness.box import PYTHON
from harness.container import DockerBox
from harness.outcomes import MANIFEST
from harness.waiting import wait_for

_KEY: Final = "MODEL_KEY"
_PORT: Final = 19092  # of loopback in the container
_ASKED: Final = "/tmp/asked"
_OURS: Final = "      - 'seccomp=./seccomp/agentbox.json'\n"
_PROVIDERS: Final = f"""
[providers.openai]
enabled = true
base_url = "http://127.0.0.1:{_PORT}/v1"
env_var = "{_KEY}"

[providers.anthropic]
enabled = true
base_url = "http://127.0.0.1:{_PORT}"
env_var = "{_KEY}"
"""
# Floods end at a limit whatever its size, and none of them writes gigabytes.
_LIMITS: Final = 'limits = { memory = "256MiB" }\n'
# The image has nothing of support: the sources of the server are the program's argument.
_SOURCES: Final = tuple(
    f"support.{name}"
    for name in ("model_turns", "anthropic_format", "model_formats", "model_server")
)
_SERVER: Final = f"""
import json, pathlib, sys, types, uvicorn
sys.modules["support"] = types.ModuleType("support")
for name, source in json.loads(sys.argv[1]).items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
ModelServer = module.ModelServer
server, asked = ModelServer(), pathlib.Path("{_ASKED}")
asked.write_text("")
async def noted(scope, receive, send):
    with asked.open("a") as stream:
        stream.write(scope["path"] + "\\n")
    await server(scope, receive, send)
uvicorn.run(noted, port={_PORT}, lifespan="off", log_level="critical", access_log=False)
"""
_REACHED: Final = f"""
import urllib.request
urllib.request.urlopen("http://127.0.0.1:{_PORT}/v1/models").close()
"""


@dataclass(frozen=True)
class Held:
    """Results by name of the case, and the paths requested from the provider."""

    rows: Mapping[str, CheckResult]
    asked: list[str]


def options(profile: str) -> dict[str, Any]:
    """Of a box under that system call list: `ours`, or the engine's own (`engine`)."""
    edits: Mapping[str, Callable[[str], str] | None] = {"ours": None, "engine": _without_ours}
    providers = MANIFEST + _LIMITS + _PROVIDERS
    return {"manifest": providers, "alter": lambda plan: plan, "secrets": {_KEY: "operator-key-0123456789"}, "edit": edits[profile]}  # fmt: skip


def _without_ours(text: str) -> str:
    assert text.count(_OURS) == 1
    return text.replace(_OURS, "")


def battery(box: DockerBox, lines: Iterable[AttackCase] = CASES) -> Held:
    """Those lines, in a box that is started for them."""
    box.start()
    box.wait_ready()
    _serve(box)
    with client_of(box) as client:
        card = run_attack(client, target_info(box.plan, Paths()), lines)
    asked = box.run(["cat", _ASKED]).out.split()
    return Held({row.subject: row for row in card.results}, asked[1:])  # the first was ours


def _serve(box: DockerBox) -> None:
    sources = {
        name: (CHECKOUT / "tests" / f"{name.replace('.', '/')}.py").read_text() for name in _SOURCES
    }
    argv = [PYTHON, "-I", "-c", _SERVER, json.dumps(sources)]
    subprocess.run(["docker", "exec", "--detach", box.name, *argv], capture_output=True, check=True)
    wait_for(
        lambda: box.run([PYTHON, "-I", "-c", _REACHED]).code == 0,
        30,
        "the provider of models answers",
    )
