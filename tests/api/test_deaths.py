"""Every death of a required program is noticed, however soon the program is running again."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest
from raw import ask
from test_supervised import Sealed, plan, started


@pytest.fixture
def sealed() -> Iterator[Sealed]:
    with started(plan()) as running:
        yield running


def test_each_program_killed_again_and_again(
    sealed: Sealed, request: pytest.FixtureRequest
) -> None:
    """Each required program, killed three times, ten with `--full`: agent-host and gateway are
    named in `/ready` every time, the API answers nothing or 503 until its first check; each within
    5 s, however soon the program is running again."""
    port = sealed.plan.api.port

    def names(program: str) -> bool:
        found = ask(port, "GET /ready HTTP/1.1")
        return found.status == 503 and any(
            row.startswith(f"program:{program} ") for row in found.json()["missing"]
        )

    kills = {"agent-host": partial(names, "agent-host"), "gateway": partial(names, "gateway")}
    for program, fell in {**kills, "management-api": lambda: not sealed.ready()}.items():
        for _ in range(10 if request.config.option.full else 3):
            pid = sealed.pid(program)
            (
                sealed.box.paths.starts_dir / program
            ).unlink()  # or it would be stopped as a program that keeps failing
            os.kill(pid, signal.SIGKILL)
            sealed.box.wait_until(fell, 5, f"{program} in missing")
            sealed.box.wait_until(
                lambda pid=pid, program=program: sealed.pid(program) not in (0, pid),
                10,
                "another start",
            )
            sealed.box.wait_until(sealed.ready, 20, "ready again")


def test_a_program_that_was_back_before_anybody_looked(sealed: Sealed) -> None:
    """The API is stopped while agent-host dies, starts and notifies: the failure is still reported,
    by its name or its slot's."""
    api, host = sealed.pid("management-api"), sealed.pid("agent-host")
    os.kill(api, signal.SIGSTOP)
    try:
        os.kill(host, signal.SIGKILL)
        sealed.box.wait_until(
            lambda: sealed.pid("agent-host") not in (0, host), 10, "another start"
        )
        note = sealed.box.paths.ready_dir / "agent-host"
        sealed.box.wait_until(lambda: json.loads(note.read_bytes())["pid"] != host, 10, "notified")
    finally:
        os.kill(api, signal.SIGCONT)
    sealed.box.wait_until(
        lambda: len(sealed.box.events("ReadinessChanged")) >= 3, 5, "fallen and risen"
    )
    fell, rose = sealed.box.events("ReadinessChanged")[-2:]
    assert (fell["to"], rose["to"]) == ("unready", "ready")
    named = {
        "program:agent-host not running (state=EXITED)",
        "adapter:orchestrator not healthy (status=down)",
    }
    assert named & set(
        fell["missing"]
    )  # whichever was checked first: a lost connection is reported at once
