"""Clause O12: one-shot runs."""

import asyncio
import time

import pytest

from agentbox.adapters.runtime import context
from agentbox.contracts.orchestrator import Orchestrator
from agentbox.core.slot_errors import QuotaExceeded
from agentbox_testkit.contracts.common import transport
from agentbox_testkit.contracts.orchestrator_lab import Lab, new_id, running_pids, shell, spec


class RunClauses:
    """Uses the fixtures `adapter`, open, and `lab`, not started."""

    @transport
    async def test_O12_a_run_gives_output_and_exit(self, adapter: Orchestrator) -> None:
        """Input is passed; both outputs and the exact exit are returned."""
        run = await adapter.run_once(
            shell("cat; echo warn >&2; exit 5"), request_id=new_id(), stdin=b"input"
        )
        assert (run.stdout, run.stderr, run.exit.code, run.truncated) == (
            b"input",
            b"warn\n",
            5,
            False,
        )

    async def test_O12_a_run_leaves_no_process(self, adapter: Orchestrator) -> None:
        """Background processes of the program have ended when the call returns."""
        needle = f"3{time.time_ns() % 10**12}"
        await adapter.run_once(
            shell(f"(setsid sleep {needle} &); sleep {needle} & exit 0"), request_id=new_id()
        )
        assert running_pids(needle) == []

    async def test_O12_output_is_cut_with_a_flag(self, adapter: Orchestrator) -> None:
        """At most the first `max_output` bytes are returned."""
        run = await adapter.run_once(
            shell("echo first; head -c 100000 /dev/zero"), request_id=new_id(), max_output=1000
        )
        assert len(run.stdout) == 1000
        assert run.stdout.startswith(b"first\n")
        assert run.truncated

    async def test_O12_a_timeout_ends_the_run(self, adapter: Orchestrator) -> None:
        """Reason `timeout`, no process left, the output so far is returned."""
        needle = f"4{time.time_ns() % 10**12}"
        run = await adapter.run_once(
            shell(f"echo up; sleep {needle}"), request_id=new_id(), timeout_s=1
        )
        assert (run.exit.reason, run.stdout) == ("timeout", b"up\n")
        assert running_pids(needle) == []

    @transport
    async def test_O12_one_request_runs_once(self, lab: Lab) -> None:
        """The same request id returns the same result, concurrently, later, and after a crash; one
        agent ran.
        """
        adapter = await lab.start()
        run = shell("echo $$")
        first, second = await asyncio.gather(
            *(adapter.run_once(run, request_id="r") for _ in range(2))
        )
        assert first == second == await adapter.run_once(run, request_id="r")
        await lab.crash()
        adapter = await lab.restart()
        assert await adapter.run_once(run, request_id="r") == first
        assert len((await adapter.list()).items) == 1

    async def test_O12_no_run_shares_a_folder_with_another(self, adapter: Orchestrator) -> None:
        """Each run has its own TMPDIR, which is removed afterwards."""
        runs = [
            await adapter.run_once(shell('echo "$TMPDIR"; touch "$TMPDIR/x"'), request_id=new_id())
            for _ in range(2)
        ]
        assert runs[0].stdout != runs[1].stdout

    async def test_O12_a_run_may_not_outlast_the_manifest(self, adapter: Orchestrator) -> None:
        """A timeout above `limits.run_wall_seconds` is QuotaExceeded without scope admin."""
        with (
            context.as_caller(context.CallContext(principal="urn:someone")),
            pytest.raises(QuotaExceeded) as caught,
        ):
            await adapter.run_once(spec("true"), request_id=new_id(), timeout_s=10_000)
        assert caught.value.members["config_path"] == "limits.run_wall_seconds"
