"""Clauses O1 to O5: a real process, exact exits, its environment."""

import asyncio
import time
from typing import Any

import pytest

from agentbox.adapters.runtime import context
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.core.slot_errors import (
    SpawnError,
    ValidationError,
)
from agentbox_testkit.contracts.common import transport
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    Lab,
    ancestors,
    first_output,
    new_id,
    running_pids,
    shell,
    spec,
    wait_ended,
)


class ProcessClauses:
    """Uses the fixtures `adapter`, open, and `lab`, not started."""

    @transport
    async def test_O01_spawn_returns_a_live_process_of_this_box(self, lab: Lab) -> None:
        """After `spawn` the pid runs the requested program, descends from the backend, and is in
        both listings.
        """
        adapter = await lab.start()
        handle = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        info = await adapter.get(handle.agent_id)
        assert info.pid is not None
        assert info.pid in running_pids(FOREVER[1])
        assert lab.root_pid in ancestors(info.pid)
        assert info.state == "running"
        assert [info_item.handle for info_item in (await adapter.list()).items] == [handle]

    async def test_O01_the_report_names_every_mechanism(self, adapter: Orchestrator) -> None:
        """The isolation report has a state, an enforcer and a reason for each mechanism."""
        handle = await adapter.spawn(spec("true"), request_id=new_id())
        report: Any = (await adapter.get(handle.agent_id)).isolation
        assert set(report) == {
            *(
                "filesystem",
                "network",
                "signals",
                "abstract_sockets",
                "pathname_sockets",
                "syscalls",
            ),
            *("memory", "cpu", "processes", "descriptors", "disk"),
        }
        assert all(row["state"] in ("enforced", "degraded", "absent") for row in report.values())

    @transport
    async def test_O02_a_refused_spawn_leaves_nothing(self, lab: Lab) -> None:
        """SpawnError has the stage; no process and no row remain, and the request id is free
        again. The target of a link counts.
        """
        adapter = await lab.start()
        (lab.workspace / "way-out").symlink_to("/usr")
        refused: tuple[tuple[str, dict[str, Any]], ...] = (
            ("exec", {"argv": ("no-such-program",)}),
            ("exec", {"argv": ("/etc/passwd",)}),
            ("profile", {"profile": "no-such-profile"}),
            ("cwd", {"cwd": "/etc"}),
            ("cwd", {"cwd": "no/such/folder"}),
            ("cwd", {"cwd": "../.."}),
            ("cwd", {"cwd": "way-out"}),
        )
        for n, (stage, wrong) in enumerate(refused):
            with pytest.raises(SpawnError) as caught:
                await adapter.spawn(spec(**{"argv": FOREVER, **wrong}), request_id=f"same-{n}")
            assert caught.value.members["stage"] == stage, wrong
            assert (await adapter.list()).items == (), wrong
            assert not [pid for pid in running_pids(FOREVER[1]) if lab.root_pid in ancestors(pid)]
        for n in range(len(refused)):
            await adapter.spawn(spec("true"), request_id=f"same-{n}")

    @pytest.mark.parametrize(
        "wrong", [{"argv": ()}, {"argv": ("true", "a\0b")}, {"env": {"A=B": "x"}}]
    )
    async def test_O02_a_spec_that_no_kernel_takes_is_invalid(
        self, adapter: Orchestrator, wrong: dict[str, Any]
    ) -> None:
        """NUL in an argument, an empty argv or a name with `=` is ValidationError."""
        with pytest.raises(ValidationError):
            await adapter.spawn(spec(**{"argv": ("true",), **wrong}), request_id=new_id())

    @pytest.mark.parametrize(
        ("script", "code", "signal", "reason"),
        [
            ("exit 0", 0, None, "exit"),
            ("exit 7", 7, None, "exit"),
            ("kill -SEGV $$", None, "SIGSEGV", "signal"),
        ],
    )
    async def test_O03_ends_are_told_apart(
        self, adapter: Orchestrator, script: str, code: int | None, signal: str | None, reason: str
    ) -> None:
        """The real code or signal is in the record."""
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await wait_ended(adapter, handle.agent_id)
        exit_info = (await adapter.get(handle.agent_id)).exit
        assert exit_info is not None
        assert (exit_info.code, exit_info.signal, exit_info.reason) == (code, signal, reason)

    async def test_O03_a_requested_stop_is_terminated(self, adapter: Orchestrator) -> None:
        """Reason `terminated`, state `exited`, however the program handles TERM."""
        for script in (
            "exec sleep 1000",
            "trap 'exit 3' TERM; echo up; while :; do sleep 0.01; done",
        ):
            handle = await adapter.spawn(shell(script), request_id=new_id())
            if "trap" in script:
                await first_output(adapter, handle, b"up")
            exit_info = await adapter.terminate(handle)
            assert exit_info.reason == "terminated"
            assert (await adapter.get(handle.agent_id)).state == "exited"

    @transport
    async def test_O04_one_request_makes_one_process(self, adapter: Orchestrator) -> None:
        """32 concurrent spawns with one request id return one handle and start one process."""
        needle = f"1{time.time_ns() % 10**12}"
        handles = await asyncio.gather(
            *(adapter.spawn(spec("sleep", needle), request_id=needle) for _ in range(32))
        )
        assert len(set(handles)) == 1
        assert len(running_pids(needle)) == 1
        assert await adapter.terminate(handles[0])
        assert await adapter.spawn(spec("sleep", needle), request_id=needle) == handles[0]
        assert running_pids(needle) == []

    async def test_O04_principals_do_not_share_request_ids(self, adapter: Orchestrator) -> None:
        """The same id of another principal is another request, and no two agents share an id."""
        agent_ids = set()
        for principal in ("urn:one", "urn:two"):
            with context.as_caller(context.CallContext(principal=principal)):
                agent_ids.add((await adapter.spawn(spec("true"), request_id="same")).agent_id)
        assert len(agent_ids) == 2

    async def test_O04_a_request_is_remembered_across_a_crash(self, lab: Lab) -> None:
        """The backend returns the first handle after its restart, too."""
        adapter = await lab.start()
        handle = await adapter.spawn(spec("true"), request_id="once")
        await wait_ended(adapter, handle.agent_id)
        await lab.crash()
        adapter = await lab.restart()
        assert await adapter.spawn(spec("true"), request_id="once") == handle

    async def test_O05_the_environment_is_short_and_known(self, adapter: Orchestrator) -> None:
        """`spec.env` plus the fixed list, and nothing else."""
        run = await adapter.run_once(
            spec("env", "-0", env={"MINE": "a\nb", "LANG": "C"}), request_id=new_id()
        )
        pairs = dict(line.split("=", 1) for line in run.stdout.decode().split("\0") if line)
        assert pairs["MINE"] == "a\nb"
        assert pairs["LANG"] == "C"
        assert set(pairs) == {
            "MINE",
            "PATH",
            "HOME",
            "TMPDIR",
            "LANG",
            "AGENTBOX_AGENT_ID",
            "AGENTBOX_AGENT_MARK",
            "AGENTBOX_URL",
            "AGENTBOX_TOKEN",
            "AGENTBOX_WORKSPACE",
        }

    async def test_O05_nothing_else_is_inherited(self, adapter: Orchestrator) -> None:
        """Three descriptors, its own session, no ignored signal, and a private TMPDIR with
        execution allowed.
        """
        script = (
            "ls /proc/self/fd | wc -l; grep SigIgn /proc/self/status; "
            'cut -d" " -f6 /proc/$$/stat; echo $$; '
            'printf "#!/bin/sh\\necho ran\\n" > "$TMPDIR/x"'
            ' && chmod +x "$TMPDIR/x" && "$TMPDIR/x"; '
            'stat -c %a "$TMPDIR"'
        )
        lines = (
            (await adapter.run_once(shell(script), request_id=new_id())).stdout.decode().split("\n")
        )
        assert lines[0] == "4"  # the fourth is ls reading the directory
        assert int(lines[1].split()[1], 16) == 0
        assert lines[2] == lines[3]
        assert lines[4:6] == ["ran", "700"]

    async def test_O05_stdin_is_null_unless_asked_for(self, adapter: Orchestrator) -> None:
        """A reading program gets end of file at once."""
        run = await adapter.run_once(spec("cat"), request_id=new_id())
        assert (run.exit.code, run.stdout) == (0, b"")
