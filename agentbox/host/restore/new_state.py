"""The program that makes a restored state in new volumes, as the host starts it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, cast

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.one_shot import BESIDE, OneShot
from agentbox.restoring.restore import RestoredState, RestoreOptions
from agentbox.restoring.stream import send

if TYPE_CHECKING:
    from agentbox.host.engines.base import Engine
    from agentbox.host.engines.state import BoxState
    from agentbox.host.restore.source import Source

MODULE = "agentbox.restoring"


def make(
    engine: Engine,
    shot: OneShot,
    source: Source,
    options: RestoreOptions,
    identities: Sequence[Any],
) -> RestoredState:
    """Sends the snapshot to the program, which has neither a network nor the identity. Raises
    AgentboxError: what the archive says first, else what the program answers.
    """
    reading, writing = os.pipe()
    failures: list[BaseException] = []

    def feed() -> None:
        try:
            with (
                _Pipe(writing) as pipe,
                source.members(identities) as members,
                suppress(BrokenPipeError),  # the program has failed, and says why
            ):
                send(pipe, options, members)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            failures.append(error)

    feeder = threading.Thread(target=feed, name="restore-feeder")
    doing, answer, failure = f"restore {options.snapshot}", "", None
    with os.fdopen(reading, "rb") as pipe:
        feeder.start()
        try:
            answer = engine.run_once(replace(shot, arguments=("make",)), doing, pipe)
        except AgentboxError as error:
            failure = error
    feeder.join()
    for found in failures:
        raise found
    if failure is not None:
        raise failure
    restored = _answer(answer, doing)
    return RestoredState.from_wire(restored)


class _Pipe:
    """The end of a pipe that is written. Closing it never fails: whoever reads may be gone."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "wb", buffering=0)

    def __enter__(self) -> IO[bytes]:
        return cast("IO[bytes]", self._file)

    def __exit__(self, *_error: object) -> None:
        self._file.close()


def settle(engine: Engine, shot: OneShot, snapshot: str, beside: Mapping[str, str]) -> str:
    """Lets the program take over what the stopped box spent, and its secrets. Returns why the
    budgets are those of the snapshot, "" if they are those of now.
    """
    arguments = ("settle", snapshot, BESIDE)
    doing = f"restore {snapshot}"
    shot = replace(shot, arguments=arguments, beside=beside)
    return str(_answer(engine.run_once(shot, doing), doing) or "")  # null of an earlier release


def make_fresh(
    engine: Engine, shot: OneShot, box: str, kept: Sequence[str], beside: Mapping[str, str]
) -> None:
    """Lets the program make a state as before a first boot, with what is kept of the present one.
    Raises AgentboxError.
    """
    keep = [word for name in kept for word in ("--keep", name)]
    doing = f"reset {box}"
    shot = replace(shot, arguments=("fresh", box, BESIDE, *keep), beside=beside)
    _answer(engine.run_once(shot, doing), doing)


def copy_live(
    engine: Engine, shot: OneShot, of: tuple[str, BoxState], beside: Mapping[str, str]
) -> dict[str, Any]:
    """Lets the program copy the state of a box that works. Returns what an upgrade notes before the
    stop. Raises AgentboxError.
    """
    doing = "rehearse the upgrade"
    shot = replace(shot, arguments=("copy", BESIDE), beside=beside, of=of)
    return dict(_answer(engine.run_once(shot, doing), doing))


def _answer(text: str, doing: str) -> Any:
    """What follows `restored`. Raises the AgentboxError that the program answered."""
    try:
        document = json.loads(text)
        error = document.get("error")
    except (ValueError, AttributeError):
        raise AgentboxError(
            f"cannot {doing}: the program that makes the state did not answer",
            "Run it again; if it stays so, `agentbox doctor` says what the engine lacks.",
            exit_code=ExitCode.ENGINE,
        ) from None
    if error is not None:
        raise AgentboxError(error["message"], error["hint"], exit_code=ExitCode(error["exit_code"]))
    return document["restored"]
