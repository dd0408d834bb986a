"""The clauses for every implementation of every slot."""

import abc
import asyncio
import contextlib
import inspect
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest

from agentbox.core.records.wire import Record
from agentbox.core.slot_errors import ERRORS, AdapterError, SlotUnavailable, from_problem
from agentbox_testkit.wait import wait_until

_Clause = TypeVar("_Clause", bound=Callable[..., Any])
SEMVER = re.compile(r"\d+\.\d+\.\d+")


def transport(clause: _Clause) -> _Clause:
    """Marks a clause that depends on the way to a store: records, errors, streams, cancelled calls.
    A second way to the same class is tried on these alone, where a whole suite takes too long.
    """
    clause.transport = True  # type: ignore[attr-defined]
    return clause


class CommonContract:
    """`calls` has, for each method of the Protocol, arguments that are valid on an empty store."""

    contract: ClassVar[type]
    calls: ClassVar[Mapping[str, tuple[tuple[Any, ...], Mapping[str, Any]]]]

    @transport
    async def test_C01_the_constructor_touches_nothing(self, store: Any) -> None:
        """Creating an instance creates no file, thread or descriptor."""
        files = await _stable_files(store.prefix)
        before = _resources()
        store.make()
        assert (_resources(), _files(store.prefix)) == (before, files)

    @transport
    async def test_C01_close_is_idempotent_and_leaves_nothing(self, store: Any) -> None:
        """After close no thread, descriptor or task of the instance remains; a second close has no
        effect.
        """
        tasks = asyncio.all_tasks()
        before = await _stable_resources()
        adapter = await store.open()
        assert _resources() - before or adapter.impl == "off"
        started = time.monotonic()
        await adapter.close()
        await adapter.close()
        assert time.monotonic() - started < 5
        await wait_until(
            lambda: not _resources() - before, lambda: f"ended: {_resources() - before}"
        )
        assert asyncio.all_tasks() <= tasks

    @transport
    async def test_C02_health_is_a_real_round_trip(self, store: Any, adapter: Any) -> None:
        """`ok` while the backend runs, `down` after its end, within 2 s and without raising."""
        assert (await adapter.health()).state == "ok"
        await store.kill_backend()
        async with asyncio.timeout(2):
            health = await adapter.health()
        assert health.state == "down"
        assert health.detail

    @transport
    async def test_C02_health_of_a_closed_instance_is_down(self, adapter: Any) -> None:
        """A closed instance reports `down`."""
        await adapter.close()
        assert (await adapter.health()).state == "down"

    @transport
    async def test_C03_version_and_capabilities_are_fixed(self, store: Any, adapter: Any) -> None:
        """The version is semver; capabilities do not change after open."""
        assert SEMVER.fullmatch(adapter.contract_version)
        before = adapter.capabilities
        await self.use(adapter)
        assert adapter.capabilities == before

    @transport
    async def test_C03_records_are_frozen_and_survive_the_wire(self, adapter: Any) -> None:
        """Every returned record is equal after to_wire and from_wire, and immutable."""
        records = [item for item in await self.use(adapter) if isinstance(item, Record)]
        assert records
        for record in records:
            assert type(record).from_wire(record.to_wire()) == record
            name = next(iter(record.to_wire()))
            with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
                setattr(record, name, None)

    async def test_C04_errors_survive_http(self) -> None:
        """error -> problem -> error preserves class, message and members."""
        for kind in ERRORS.values():
            error = kind("cannot do it: so", **_members(kind))
            restored = from_problem(error.to_problem("r-1"), error.status)
            assert (type(restored), restored.message, restored.members) == (
                kind,
                error.message,
                error.members,
            )

    @transport
    async def test_C05_calls_before_open_and_after_close_are_refused(self, store: Any) -> None:
        """Every method raises SlotUnavailable then."""
        unopened = store.make()
        closed = await store.open()
        await closed.close()
        for adapter in (unopened, closed):
            for name, (args, kwargs) in self.calls.items():
                with pytest.raises(SlotUnavailable):
                    await _consume(getattr(adapter, name)(*args, **kwargs))

    async def test_C05_every_method_has_a_call_here(self) -> None:
        """The suite's table of calls covers each method of the Protocol."""
        declared = {
            name
            for name, item in vars(self.contract).items()
            if callable(item) and not name.startswith("_")
        }
        assert set(self.calls) == declared

    @abc.abstractmethod
    async def use(self, adapter: Any) -> list[Any]:
        """Use the slot briefly; return the received records."""


def _members(kind: type[AdapterError]) -> dict[str, Any]:
    return {name: f"<{name}>" for name in kind.names}


async def _consume(outcome: Any) -> None:
    if isinstance(outcome, AsyncIterator):
        await anext(outcome)
    elif inspect.isawaitable(outcome):
        await outcome


def _resources() -> set[threading.Thread | tuple[str, str]]:
    """Return the running threads and the open descriptors, each with its target."""
    resources: set[threading.Thread | tuple[str, str]] = set(threading.enumerate())
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
            resources.add((name, os.readlink(f"/proc/self/fd/{name}")))  # noqa: PTH115
    return resources


async def _stable_resources() -> set[threading.Thread | tuple[str, str]]:
    """As `_resources`, after it has not changed for a tenth of a second: a descriptor that a
    fixture closed may still be open on its other side in this process.
    """
    resources, repeats = _resources(), 0
    while repeats < 5:
        await asyncio.sleep(0.02)
        current = _resources()
        resources, repeats = current, repeats + 1 if current == resources else 0
    return resources


async def expect_error(kind: type[AdapterError], call: Any) -> AdapterError:
    """Return the error that a call raises, which must be of that class."""
    with pytest.raises(kind) as error_info:
        await call
    return error_info.value


async def not_refused(
    kind: type[AdapterError], cases: Iterable[Any], call: Callable[[Any], Awaitable[Any]]
) -> list[tuple[Any, Any]]:
    """Return the cases whose call does not raise an error of that class, each with its outcome."""
    found: list[tuple[Any, Any]] = []
    outcome: Any
    for case in cases:
        (outcome,) = await asyncio.gather(call(case), return_exceptions=True)
        if not isinstance(outcome, kind):
            found.append((case, outcome))
    return found


def _files(directory: Path) -> list[str]:
    """Return all paths below it; files that disappear meanwhile are skipped."""
    return sorted(
        f"{parent}/{name}"
        for parent, directories, files in os.walk(directory)
        for name in (*directories, *files)
    )


async def _stable_files(directory: Path) -> list[str]:
    """As `_files`, after a program that was just started has written its files."""
    files, repeats = _files(directory), 0
    for _ in range(50):
        await asyncio.sleep(0.1)
        current = _files(directory)
        files, repeats = current, repeats + 1 if current == files else 0
        if repeats == 3:
            break
    return files
