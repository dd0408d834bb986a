"""A prefix for programs of features: files of the control plane and of other programs, and starting
one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agentbox.core.paths import PREFIX_VARIABLE, Paths, environment
from agentbox.plan.model import Plan
from support.plans import plan_of
from support.probe_script import PROBES

JUPYTER = "[skills.data_science]\njupyter = true\n"
"""A manifest with a program of a feature."""

NAME = "jupyter"
"""The name of that program."""
_SCRIPT = f"""{PROBES}
import subprocess, tempfile
def read(path):
    with open(path) as stream: stream.read()
def write(path):
    with open(path, "a") as stream: stream.write("x")
def serve(port):
    with socket.create_server(("127.0.0.1", port)): pass
def connect(port):
    with socket.create_connection(("127.0.0.1", port)): pass
def unix(path):
    with socket.socket(socket.AF_UNIX) as client: client.connect(path)
"""


class ProgramBox:
    """A prefix with files of the control plane and of another program."""

    def __init__(self, root: Path) -> None:
        self.paths = paths = Paths(root)
        for directory in (
            paths.share,
            paths.run,
            paths.tmp,
            paths.workspace,
            paths.state,
            paths.mounted_secrets,
            paths.moved_secrets,
            paths.state_secrets,
            paths.ready_dir,
            paths.slot("events"),
            paths.slot("comfyui"),
            paths.desktop,
            paths.user_runtime,
        ):
            directory.mkdir(parents=True, exist_ok=True)
        self.closed = {
            "secret": paths.mounted_secrets / "ANTHROPIC_API_KEY",
            "moved_secret": paths.moved_secrets / "OTHER_PASSWORD",
            "api_key": paths.api_key,
            "agents_db": paths.slot("orchestrator") / "agents.db",
            "journal": paths.slot("events") / "journal.jsonl",
            "token": paths.token("supervisor"),
            "ready": paths.ready_dir / "gateway",
            "another_program": paths.slot("comfyui") / "state",
            "desktop": paths.desktop / "xauthority",
            "another_temp": paths.tmp / "comfyui.abc" / "file",
            "wayland": paths.user_runtime / "wayland-0.lock",
        }
        for path in self.closed.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("theirs")
        paths.password("jupyter-token").write_text("its own")
        self.write_plan(plan_of(JUPYTER))

    def write_plan(self, plan: Plan) -> None:
        """Writes the plan."""
        self.plan = plan
        self.paths.plan.write_text(json.dumps(plan.to_json()))

    def change_ruleset(self, **changes: object) -> None:
        """Writes the plan with another ruleset for the program."""
        ruleset = replace(self.plan.rulesets[NAME], **changes)  # type: ignore[arg-type]
        self.write_plan(replace(self.plan, rulesets={NAME: ruleset}))

    def start(self, *command: str, name: str = NAME) -> subprocess.Popen[str]:
        """Starts the program like supervisord."""
        return subprocess.Popen(
            [sys.executable, "-I", "-m", "agentbox.box.programs.confined", name, *command],
            env={**environment(), PREFIX_VARIABLE: str(self.paths.prefix)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.paths.workspace,
        )

    def run_json(self, script: str, *arguments: object) -> Mapping[str, object]:
        """Run a Python script instead of the program and return its JSON. Raises AssertionError if
        it fails.
        """
        program = self.start(sys.executable, "-I", "-c", _SCRIPT + script, *map(str, arguments))
        out, err = program.communicate(timeout=120)
        assert program.returncode == 0, err
        document: dict[str, object] = json.loads(out)
        return document
