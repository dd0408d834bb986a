"""A start that cannot succeed ends with one sentence and the right exit code."""

import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers import until
from support.api_box import ApiBox, api_plan

from agentbox.core.canonical import canonical_json
from agentbox.plan.model import Plan


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="abx-", dir="/var/tmp") as name:
        yield Path(name)


def start(folder: Path, plan: Plan, *, token: bool = True) -> subprocess.CompletedProcess[str]:
    """One start, to its end."""
    box = ApiBox(folder, orchestrator=False, plan=plan)
    if not token:
        box.paths.api_key.unlink()
    env = {"AGENTBOX_PREFIX": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "-I", "-m", "agentbox.api"],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def test_a_port_in_use_is_named(folder: Path) -> None:
    """Exit 7, address and port."""
    plan = api_plan()
    with socket.create_server(("127.0.0.1", plan.api.port)):
        done = start(folder, plan)
    assert done.returncode == 7
    assert f"cannot listen on 127.0.0.1:{plan.api.port}" in one_sentence(done)


def test_no_token_serves_nobody(folder: Path) -> None:
    """Exit 1: an API without a credential is not started."""
    done = start(folder, api_plan(), token=False)
    assert done.returncode == 1
    assert "no admin token found" in one_sentence(done)


def test_another_kind_of_credentials_is_refused_by_name(folder: Path) -> None:
    """api.auth that has no class yet."""
    plan = api_plan()
    done = start(folder, replace(plan, api=replace(plan.api, auth="nip98")))
    assert "cannot serve api.auth = nip98" in one_sentence(done)


def test_a_damaged_plan_is_named(folder: Path) -> None:
    """The file, and what to do."""
    box = ApiBox(folder, orchestrator=False)
    box.paths.plan.write_bytes(canonical_json({"schema": 1}))
    env = {"AGENTBOX_PREFIX": str(folder), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-I", "-m", "agentbox.api"],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot read the plan" in one_sentence(done)


def test_a_required_orchestrator_that_is_not_there_is_fatal(folder: Path) -> None:
    """Within its 10 s the slot did not open: exit 1, naming it."""
    done = start(folder, api_plan())
    assert done.returncode == 1
    assert "the required slot orchestrator" in one_sentence(done)


class Collector(ThreadingHTTPServer):
    """Receives traces."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Trace)
        self.got: list[tuple[str, bytes]] = []


class _Trace(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Answers nothing."""


def test_traces_go_where_the_manifest_says(folder: Path) -> None:
    """With otlp_endpoint a slot call is exported as a span, without its arguments; /v1/meta reports
    it."""
    collector = Collector()
    threading.Thread(target=collector.serve_forever, args=(0.01,), daemon=True).start()
    plan = api_plan()
    watch = replace(plan.observability, otlp_endpoint=f"http://127.0.0.1:{collector.server_port}")
    with ApiBox(folder, orchestrator=False, observability=watch) as box, box.client() as client:
        client.call("create_epic", body={"title": "a title of mine"})
        assert client.meta().observability["otlp"] is True
        box.stop()
    until(lambda: any(b"agentbox.adapter.beads.create_epic" in body for _, body in collector.got))
    assert {path for path, _ in collector.got} == {"/v1/traces"}
    assert not any(b"a title of mine" in body for _, body in collector.got)
    collector.shutdown()
    collector.server_close()


def test_logs_are_json_lines(folder: Path) -> None:
    """Everything that the program prints can be read by a program."""
    with ApiBox(folder, orchestrator=False) as box, box.client() as client:
        client.livez()
        with socket.create_connection(("127.0.0.1", box.plan.api.port)) as sock:
            sock.sendall(b"nonsense\r\n\r\n")
            sock.recv(1000)
    lines = box.log.read_text().splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)
