"""A real box below a temporary prefix: the real boot, supervisord and seal, and small test
programs.

Started by root it runs as uid 1000, else as the caller. All its processes end with it.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentbox_testkit.wait import pause

from agentbox.box.supervision.rpc import SupervisorClient
from agentbox.core.canonical import canonical_json, digest
from agentbox.core.linux import procfs
from agentbox.core.paths import PREFIX_VARIABLE, Paths
from agentbox.host.engines.process.box_processes import box_pids
from agentbox.plan.model import (
    ApiPlan,
    Digests,
    ObservabilityPlan,
    Plan,
    Probe,
    Program,
    ReadySignal,
    ResourcesPlan,
    SlotPlan,
)
from agentbox.plan.render.probes import probes
from agentbox.plan.render.supervisord import supervisord
from agentbox.plan.supervisord_files import boot_log
from agentbox.plan.tables import CostPlan, StatePlan
from support import tables

UID = 1000
MANIFEST = b'[meta]\nname = "box"\n'
PYTHON = "/opt/agentbox/venv/bin/python"
ROOTS = (
    "/run/agentbox",
    "/tmp",
    "/var/lib/agentbox",
    "/var/log",
    "/var/log/supervisor",
    "/workspace",
)
_DIRECTORIES = (
    "opt/agentbox/share",
    "opt/agentbox/test",
    "etc",
    "run/secrets",
    *(root.lstrip("/") for root in ROOTS),
)

# Behaves like a program of a box: backs off, serves /livez as the API, notifies, and keeps running.
PROGRAM = """
import http.server, sys, threading, time
from agentbox.core.paths import Paths
from agentbox.box.supervision.backoff import backoff
from agentbox.box.supervision.notify import notify
name, port = sys.argv[1], int(sys.argv[2])
paths = Paths.for_this_process()
backoff(paths, name)
class Live(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/livez" else 404)
        self.end_headers()
    def log_message(self, *_):
        pass
if port:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Live)
    threading.Thread(target=server.serve_forever, daemon=True).start()
notify(paths, name)
while True:
    time.sleep(60)
"""


def box_program(
    name: str, priority: int, *, port: int = 0, script: str = "program.py", **changes: Any
) -> Program:
    """Return a required program that notifies, run from `/opt/agentbox/test/<script>` of the prefix
    (argv: name, port).
    """
    fields = {
        "required": True,
        "ready": ReadySignal(by="notify"),
        "argv": (PYTHON, "-I", f"{{opt}}/{script}", name, str(port)),
    }
    return Program(name=name, priority=priority, **{**fields, **changes})


def once(name: str, priority: int, module: str, **changes: Any) -> Program:
    """Return a module that runs to its end, such as `bootstrap` and `bootstrap-seal`."""
    return Program(
        name=name,
        priority=priority,
        argv=(PYTHON, "-I", "-m", module),
        ready=ReadySignal(by="exit0"),
        once=True,
        group="once",
        **{"required": True, **changes},
    )


def default_programs(port: int) -> tuple[Program, ...]:
    return (
        once("bootstrap", 5, "agentbox.box.boot", env={"AGENTBOX_BOOTSTRAP_STAGE": "B"}),
        box_program("management-api", 10, port=port),
        box_program("agent-host", 30),
        once("bootstrap-seal", 99, "agentbox.box.seal.main", required=False),
    )


def make_plan(port: int, programs: tuple[Program, ...], **changes: Any) -> Plan:
    """Return a small plan; `changes` are fields of Plan."""
    nofile = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    fields: dict[str, Any] = {
        "version": "0",
        "name": "box",
        "system": "x86_64-linux",
        "dev": False,
        "source": "debian",
        "suite": "trixie",
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "features": ("core",),
        "digests": Digests(
            manifest=digest(MANIFEST), lock=digest(b"lock"), seccomp=digest(b"seccomp")
        ),
        "resources": ResourcesPlan(
            cpus=1,
            memory=1 << 30,
            pids=512,
            nofile=min(nofile, 4096),
            tmp_size=1,
            log_size=1,
            stop_seconds=30,
        ),
        "api": ApiPlan(
            port=port,
            publish_address="127.0.0.1",
            auth="token",
            max_body=1,
            public_base="",
            token_env="BOX_TOKEN",
            session_idle_seconds=28_800,
            session_seconds=86_400,
        ),
        "observability": ObservabilityPlan(
            metrics_port=port + 1, publish_address="127.0.0.1", otlp_endpoint="", log_level="info"
        ),
        "mesh": tables.mesh(),
        "privacy": tables.privacy(),
        "limits": tables.limits(),
        "state": StatePlan(keep_days=7),
        "cost": CostPlan(currency="USD", unknown="refuse", keep_days=400),
        "sandboxes": tables.sandboxes(),
        "acp": tables.acp(),
        "mcp": tables.mcp(),
        "backup": tables.backup(),
        "reach": tables.reach(),
        "slots": {"events": SlotPlan(use="local-jsonl", required=False)},
        "programs": programs,
        "ports": (),
        "probes": (Probe(id="core-venv", feature="core", kind="path", type="exec", path=PYTHON),),
        "tmpfs": (),
        "volumes": (),
        "writable_roots": ROOTS,
        "secrets": ("BOX_TOKEN",),
        "environment": {},
        "egress": (),
        "exceptions": (),
        "apply": {},
    }
    return Plan(**{**fields, **changes})


class PrefixBox:
    """A context manager: `start` may be called repeatedly; the end kills and removes everything."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="agentbox-", dir="/var/tmp"))
        self.paths = Paths(self.root / "box")
        self.process: subprocess.Popen[bytes] | None = None
        for directory in _DIRECTORIES:
            (self.paths.prefix / directory).mkdir(parents=True, exist_ok=True)
        self.paths.venv.symlink_to(sys.prefix)
        self.script("program.py", PROGRAM)

    def __enter__(self) -> "PrefixBox":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.root)

    def script(self, name: str, text: str) -> None:
        """Writes a test program below `/opt/agentbox/test`."""
        (self.paths.resolve("/opt/agentbox/test") / name).write_text(text)

    def install(self, plan: Plan) -> Plan:
        """Writes the files of the image; returns the plan with the real paths of scripts."""
        text = (
            canonical_json(plan.to_json())
            .decode()
            .replace("{opt}", str(self.paths.resolve("/opt/agentbox/test")))
        )
        plan = Plan.from_json(json.loads(text))
        self.paths.plan.write_bytes(canonical_json(plan.to_json()))
        self.paths.probes.write_text(probes(plan))
        self.paths.supervisord_conf.write_text(supervisord(plan, self.paths))
        self.paths.baked_manifest.write_bytes(MANIFEST)
        self.paths.manifest.write_bytes(MANIFEST)
        return plan

    def start(self, env: Mapping[str, str] | None = None) -> None:
        """Runs Stage A. Its stdout goes to `boot.log`, as under the process engine."""
        boot_log(self.paths).touch()
        self._chown_tree()
        base = {"PATH": "/usr/bin:/bin", PREFIX_VARIABLE: str(self.paths.prefix), **(env or {})}
        with boot_log(self.paths).open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.paths.python), "-I", "-m", "agentbox.box.boot"],
                cwd=self.paths.prefix,
                env=base,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_as_box_user(),
            )

    def wait(self, seconds: float = 60) -> int:
        """Return the exit code of PID 1."""
        assert self.process is not None
        return self.process.wait(seconds)

    def log(self) -> str:
        return boot_log(self.paths).read_text()

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """Return every event on stdout so far, of every start, without an incomplete line."""
        complete = self.log().rpartition("\n")[0]
        events_so_far = [json.loads(line) for line in complete.splitlines() if line.startswith("{")]
        return [event for event in events_so_far if not name or event["event"] == name]

    def wait_until(
        self, condition: Callable[[], object], seconds: float = 60, description: str = ""
    ) -> None:
        """Waits until `condition()` is true. An AssertionError shows the log."""
        deadline = time.monotonic() + seconds
        started = time.monotonic()
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {seconds} s: {description or condition}\n{self.log()}"
                )
            time.sleep(pause(started))
            started = time.monotonic()

    def wait_for_event(self, name: str, seconds: float = 60) -> dict[str, Any]:
        self.wait_until(lambda: self.events(name), seconds, name)
        return self.events(name)[-1]

    def supervisor(self) -> SupervisorClient:
        return SupervisorClient(self.paths)

    def stop(self) -> int:
        """Sends SIGTERM, as the engine does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Sends SIGKILL to PID 1 and every process with this prefix in its environment."""
        for pid in box_pids(self.paths.prefix):
            if procfs.is_alive(pid):
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def _chown_tree(self) -> None:
        if os.geteuid() == 0:
            for directory, _folders, files in os.walk(self.root):
                for path in (directory, *(os.path.join(directory, name) for name in files)):  # noqa: PTH118
                    os.lchown(path, UID, UID)


def _as_box_user() -> dict[str, Any]:
    return {"user": UID, "group": UID, "extra_groups": []} if os.geteuid() == 0 else {}
