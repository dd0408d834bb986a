"""The stores of a box that is down, through the program of its image or environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.base import Engine
from agentbox.host.engines.one_shot import OneShot
from agentbox.host.engines.state import BoxState
from agentbox.host.generations.record import Generation

_MODULE: Final = "agentbox.api.stores"


class BoxStores:
    """Runs verbs of `agentbox.api.stores` with the release of `runner` on the volumes of
    `generation`. What a return needs is done by the release of `other` where that fails: the image
    of one of them may be gone or broken. Raises AgentboxError: exit 6, and 3 where there is too
    little room.
    """

    def __init__(
        self,
        engine: Engine,
        state: BoxState,
        name: str,
        generation: Generation,
        runner: Generation,
        other: Generation | None = None,
    ) -> None:
        self._engine, self._state, self._name = engine, state, name
        self._generation, self._runner, self._other = generation, runner, other

    def known(self) -> dict[str, int]:
        """The newest migration of each store that the release has."""
        return dict(self._run("known", doing="read the migrations of the new release"))

    def states(self) -> dict[str, dict[str, Any]]:
        """`migration` and `rows` of each store, as of the stop."""
        return dict(self._run("numbers", doing="read the stores"))

    def copy(self, number: int, stores: Sequence[str]) -> list[dict[str, Any]]:
        """Makes the rollback copies before generation `number` starts."""
        if not stores:
            return []
        argument = json.dumps({"generation": number, "stores": list(stores)})
        try:
            return list(self._run("copy", argument, doing="copy the stores"))
        except AgentboxError as error:
            if "bytes are needed" not in error.message:
                raise
            raise AgentboxError(
                error.message,
                "Free that much on the file system of the state volume, then upgrade again.",
                exit_code=ExitCode.PREREQUISITE,
            ) from error

    def restore(self, number: int, copies: Sequence[Mapping[str, Any]]) -> None:
        """Renames the copies into place; may be repeated."""
        argument = json.dumps({"generation": number, "copies": list(copies)})
        self._return("restore", argument, doing="put the stores back")

    def discard(self, number: int) -> None:
        self._return("discard", str(number), doing="remove the copies of the stores")

    def hold(self, number: int) -> None:
        """Makes the next start a held one."""
        self._run("hold", str(number), doing="hold the start")

    def unhold(self) -> None:
        self._return("unhold", doing="end the hold")

    def _return(self, verb: str, *arguments: str, doing: str) -> None:
        try:
            self._run(verb, *arguments, doing=doing)
        except AgentboxError as error:
            if self._other is None:
                raise
            try:
                self._run(verb, *arguments, doing=doing, runner=self._other)
            except AgentboxError:
                raise error from None

    def _run(self, verb: str, *arguments: str, doing: str, runner: Generation | None = None) -> Any:
        runner = runner or self._runner
        shot = OneShot(
            name=self._name,
            state=self._state,
            module=_MODULE,
            arguments=(verb, *arguments),
            image=runner.image_id or runner.image_ref,
            python=runner.python,
            volumes=self._generation.volumes,
        )
        return json.loads(self._engine.run_once(shot, doing))
