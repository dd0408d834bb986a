"""Clauses O1 to O7: a real process, exact exits, the whole tree."""

import asyncio
import time
from typing import Any

import pytest

from agentbox.adapters.runtime import context
from agentbox.contracts.orchestrator import AgentHandle, Orchestrator
from agentbox.core.slot_errors import (
    InvalidTransition,
    NotFound,
    SpawnError,
    StaleHandle,
    ValidationError,
)
from agentbox_testkit.contracts.common import transport
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    Lab,
    ancestors,
    first_output,
    is_alive,
    items,
    new_id,
    output,
    running_pids,
    shell,
    spec,
    wait_ended,
    wait_until_async,
)
from agentbox_testkit.wait import wait_until


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
    @pytest.mark.parametrize(
        ("stage", "wrong"),
        [
            ("exec", {"argv": ("no-such-program",)}),
            ("exec", {"argv": ("/etc/passwd",)}),
            ("profile", {"profile": "no-such-profile"}),
            ("cwd", {"cwd": "/etc"}),
            ("cwd", {"cwd": "no/such/folder"}),
            ("cwd", {"cwd": "../.."}),
        ],
    )
    async def test_O02_a_refused_spawn_leaves_nothing(
        self, lab: Lab, stage: str, wrong: dict[str, Any]
    ) -> None:
        """SpawnError has the stage; no process and no row remain, and the request id is free
        again.
        """
        adapter = await lab.start()
        with pytest.raises(SpawnError) as caught:
            await adapter.spawn(spec(**{"argv": FOREVER, **wrong}), request_id="the-same")
        assert caught.value.members["stage"] == stage
        assert (await adapter.list()).items == ()
        assert not [pid for pid in running_pids(FOREVER[1]) if lab.root_pid in ancestors(pid)]
        await adapter.spawn(spec("true"), request_id="the-same")

    async def test_O02_a_link_out_of_the_workspace_is_a_forbidden_cwd(self, lab: Lab) -> None:
        """The target of the link counts."""
        adapter = await lab.start()
        (lab.workspace / "way-out").symlink_to("/usr")
        with pytest.raises(SpawnError) as caught:
            await adapter.spawn(spec("true", cwd="way-out"), request_id=new_id())
        assert caught.value.members["stage"] == "cwd"

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

    async def test_O06_terminate_ends_the_whole_tree(self, adapter: Orchestrator) -> None:
        """Double-forked, re-sessioned and TERM-ignoring descendants have ended when `terminate`
        returns.
        """
        needle = f"2{time.time_ns() % 10**12}"
        script = (
            f"(setsid sleep {needle} &); (trap '' TERM; setsid sh -c \"trap '' TERM; sleep "
            f'{needle}; sleep {needle}" &);'
            f" sleep {needle} & echo up; wait"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"up")
        await wait_until(lambda: len(running_pids(needle)) >= 4, "the process tree is running")
        start = time.monotonic()
        exit_info = await adapter.terminate(handle, grace_s=0.3)
        assert time.monotonic() - start < 5.3
        assert running_pids(needle) == []
        assert await adapter.terminate(handle) == exit_info

    async def test_O06_grace_is_given(self, adapter: Orchestrator) -> None:
        """A program that cleans up within the grace period ends with its own code, and its last
        output is kept.
        """
        script = "trap 'sleep 0.2; echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done"
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"up")
        exit_info = await adapter.terminate(handle, grace_s=5)
        assert (exit_info.code, exit_info.reason) == (9, "terminated")
        assert output(await items(adapter, handle.agent_id)).endswith(b"bye\n")

    @transport
    async def test_O07_unknown_and_stale_handles_are_refused(self, adapter: Orchestrator) -> None:
        """Another generation is StaleHandle with the current one, another agent NotFound, in each
        call.
        """
        handle = await adapter.spawn(spec(*FOREVER, stdin="pipe"), request_id=new_id())
        stale = AgentHandle(agent_id=handle.agent_id, generation=handle.generation + 1)
        unknown = AgentHandle(agent_id=new_id(), generation=1)
        for bad_handle, error in ((stale, StaleHandle), (unknown, NotFound)):
            with pytest.raises(error):
                await adapter.signal(bad_handle, "TERM")
            with pytest.raises(error):
                await adapter.terminate(bad_handle)
            with pytest.raises(error):
                await adapter.attach(bad_handle)
        with pytest.raises(NotFound):
            await adapter.get(unknown.agent_id)
        await adapter.terminate(handle)

    async def test_O07_stop_and_cont_act_on_the_tree(self, adapter: Orchestrator) -> None:
        """A stopped agent and its descendants make no progress; after CONT they continue."""
        script = (
            "setsid sh -c 'while :; do echo x; sleep 0.01; done' & while :; do sleep 0.01; done"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"x")
        await adapter.signal(handle, "STOP")
        pid = (await adapter.get(handle.agent_id)).pid
        assert pid is not None

        async def is_quiet() -> bool:
            before = len(await items(adapter, handle.agent_id, follow=False))
            await asyncio.sleep(0.3)  # enough for a running program to write thirty lines
            return len(await items(adapter, handle.agent_id, follow=False)) == before

        await wait_until_async(is_quiet, "buffered output has arrived and output has stopped")
        after = len(await items(adapter, handle.agent_id, follow=False))
        assert is_alive(pid)
        await adapter.signal(handle, "CONT")
        await wait_until_async(
            lambda: _has_grown(adapter, handle.agent_id, after), "output continues"
        )
        await adapter.terminate(handle)

    async def test_O07_signals_reach_the_program(self, adapter: Orchestrator) -> None:
        """Each allowed signal arrives unchanged; an ended agent cannot be signalled."""
        script = (
            'for s in INT HUP USR1 USR2; do trap "echo got $s" $s; done; '
            "echo up; while :; do sleep 0.01; done"
        )
        handle = await adapter.spawn(shell(script), request_id=new_id())
        await first_output(adapter, handle, b"up")
        for name in ("INT", "HUP", "USR1", "USR2"):
            await adapter.signal(handle, name)
            await first_output(adapter, handle, f"got {name}".encode())
        await adapter.terminate(handle, grace_s=0)
        with pytest.raises(InvalidTransition):
            await adapter.signal(handle, "INT")


async def _has_grown(adapter: Orchestrator, agent_id: str, beyond: int) -> bool:
    return len(await items(adapter, agent_id, follow=False)) > beyond + 3
