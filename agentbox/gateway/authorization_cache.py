"""The rights of all agents, as agent-host tells them. While it tells nothing, nobody holds anything."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import structlog

from agentbox.adapters.orchestrator.local_process import connect
from agentbox.core.deadline import Deadline
from agentbox.core.paths import Paths
from agentbox.core.rpc.client import RpcClient
from agentbox.core.slot_errors import AdapterError, PermissionDenied, ValidationError
from agentbox.gateway.authorizer import Layer, Refused
from agentbox.gateway.denials import Refusals
from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.rights import allowing
from agentbox.policy.rights.standing import Right, Standing
from agentbox.policy.rights.wire import standing_from_json

log = structlog.get_logger()
_CONNECT_SECONDS = 10.0
_CALL_SECONDS = 5.0
_APPROVAL_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries to connect, doubling

_Life = tuple[str, int]  # agent, generation


class Following:
    """The `Authority` of the gateway. Run `follow` for as long as it is used."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._client: RpcClient | None = None
        self._lives: dict[_Life, Standing] = {}
        self._tokens: dict[bytes, _Life] = {}
        self._cuts: dict[_Life, asyncio.Future[None]] = {}
        self._known = asyncio.Event()
        self._refusals = Refusals(self._call)

    async def follow(self) -> None:
        """Until cancelled. Connects anew as often as needed; each loss takes everything back at once."""
        pause = _FIRST_PAUSE
        sending = asyncio.create_task(self._refusals.send(), name="refusals")
        try:
            while True:
                try:
                    self._client, _ = await connect(self._paths, Deadline.after(_CONNECT_SECONDS))
                    pause = _FIRST_PAUSE
                    await self._take(self._client)
                except (AdapterError, OSError) as error:
                    log.warning("agent-host is not followed", reason=str(error))
                finally:
                    await self._lose()
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, 2 * pause)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def until_known(self) -> None:
        """Returns once the whole set has arrived."""
        await self._known.wait()

    @property
    def known(self) -> bool:
        """Whether agent-host is followed now."""
        return self._known.is_set()

    def identify(self, bearer: str) -> Standing:
        """Looked up by the hash, which says nothing of the token; then compared in constant time. Raises Refused."""
        digest = hashlib.sha256(bearer.encode("utf-8", "surrogatepass")).digest()
        life = self._tokens.get(digest)
        standing = None if life is None else self._lives.get(life)
        if standing is None or not hmac.compare_digest(bytes.fromhex(standing.token_sha256), digest):
            raise Refused("token", "the token is unknown, or its agent has ended")
        return standing

    async def check(
        self,
        who: Standing,
        scope: Scope,
        operation: str,
        value: str,
        *,
        method: str = "",
        path: str = "",
        take: bool = True,
    ) -> None:
        """By the rights of this moment, of the agent and of all that it descends from. Raises Refused."""
        rule = f"{scope} {operation}"
        now = self._current(who, rule)
        counted = False
        for rights in (now.rights, *(ancestor.rights for ancestor in now.ancestors)):
            right = _allowing(rights, scope, operation, value, method, path)
            if right is None:
                raise Refused(rule, f"no right of the agent allows {scope} {operation} here")
            counted = counted or right.uses is not None or right.rate is not None
        if counted and take:
            asked = {"scope": scope, "operation": operation, "value": value, "method": method, "path": path}
            await self._use(now, rule, asked)
            self._current(who, rule)  # it may have ended while agent-host counted

    async def approve(
        self,
        who: Standing,
        kind: str,
        value: str,
        parameters: Mapping[str, Any],
        words: str = "",
        *,
        hold: bool = False,
    ) -> None:
        """Waits as long as agent-host does. Raises Refused."""
        rule = f"approval {kind}"
        now = self._current(who, rule)
        asked = {
            "agent_id": who.agent_id, "generation": who.generation, "kind": kind, "value": value,
            "parameters": dict(parameters), "words": words, "hold": hold,
        }  # fmt: skip
        seconds = float(now.limits.get("approval_timeout_seconds", _APPROVAL_SECONDS)) + _CALL_SECONDS
        try:
            await self._call("approval.ask", asked, seconds)
        except (PermissionDenied, ValidationError) as error:
            raise Refused(rule, error.message) from error
        except (AdapterError, ConnectionError) as error:
            raise Refused(rule, "nobody can be asked: agent-host does not answer") from error
        self._current(who, rule)  # it may have ended while it waited

    def revoked(self, who: Standing) -> "asyncio.Future[None]":
        """The same future for every caller, and a new one after it is done: take it before `check`, and check again when it
        is done."""
        life = (who.agent_id, who.generation)
        if life in self._lives:
            return self._cuts.setdefault(life, asyncio.get_running_loop().create_future())
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        over.set_result(None)
        return over

    def denied(self, who: Standing, layer: Layer, rule: str, detail: str = "") -> None:
        """Told to agent-host, however long that takes."""
        self._refusals.add((who.agent_id, who.generation, layer, rule), detail)

    def _current(self, who: Standing, rule: str) -> Standing:
        standing = self._lives.get((who.agent_id, who.generation))
        if standing is None:
            raise Refused(rule, "the agent has ended, or agent-host is not reached")
        return standing

    async def _use(self, who: Standing, rule: str, asked: Mapping[str, Any]) -> None:
        try:
            await self._call("grant.use", {"agent_id": who.agent_id, "generation": who.generation, **asked})
        except PermissionDenied as error:
            raise Refused(rule, error.message) from error
        except (AdapterError, ConnectionError) as error:
            raise Refused(rule, "uses cannot be counted: agent-host does not answer") from error

    async def _call(self, name: str, params: Mapping[str, Any], seconds: float = _CALL_SECONDS) -> Any:
        if (client := self._client) is None:
            raise ConnectionError("agent-host is not followed")
        return await client.call(name, params, Deadline.after(seconds))

    async def _take(self, client: RpcClient) -> None:
        subscription = await client.subscribe("standing.follow", {}, Deadline.after(_CONNECT_SECONDS))
        async with aclosing(subscription.items()) as items:
            async for change in items:
                self._change(change)

    def _change(self, change: Mapping[str, Any]) -> None:
        kind = change["kind"]
        if kind == "whole":
            self._known.set()
        elif kind == "over":
            self._drop((change["agent_id"], change["generation"]))
        else:
            standing = standing_from_json(change["standing"])
            for life in [one for one in self._lives if one[0] == standing.agent_id and one[1] != standing.generation]:
                self._drop(life)
            life = (standing.agent_id, standing.generation)
            self._lives[life] = standing
            self._tokens[bytes.fromhex(standing.token_sha256)] = life
            self._cut(life)

    def _drop(self, life: _Life) -> None:
        if (standing := self._lives.pop(life, None)) is not None:
            self._tokens.pop(bytes.fromhex(standing.token_sha256), None)
        self._cut(life)

    def _cut(self, life: _Life) -> None:
        if (future := self._cuts.pop(life, None)) is not None and not future.done():
            future.set_result(None)

    async def _lose(self) -> None:
        self._known.clear()
        self._lives.clear()
        self._tokens.clear()
        for life in list(self._cuts):
            self._cut(life)
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _allowing(
    rights: tuple[Right, ...], scope: Scope, operation: str, value: str, method: str, path: str
) -> Right | None:
    grant_id = allowing(rights, scope, operation, value, method=method, path=path)
    found = next((right for right in rights if right.grant_id == grant_id), None) if grant_id else None
    if found is not None and found.expires_at is not None and found.expires_at <= time.time():
        return None
    return found
