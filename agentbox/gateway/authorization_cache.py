"""The authorizations of all agents, streamed from agent-host. While disconnected, every agent is
denied."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import structlog

from agentbox.client.agent_host.connection import open_agent_host
from agentbox.contracts.agent_host.port import AgentHost
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import AdapterError, PermissionDenied, ValidationError
from agentbox.gateway.authorizer import AccessDenied, Layer
from agentbox.gateway.denials import DenialReporter
from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.authorization import Authorization, Right
from agentbox.policy.rights.rights import find_allowing_right
from agentbox.policy.rights.wire import authorization_from_json

log = structlog.get_logger()
_MARGIN_SECONDS = 5.0  # for the reply to a request for approval
_MIN_PAUSE, _MAX_PAUSE = 0.05, 2.0  # seconds between connection attempts, doubling

_RunKey = tuple[str, int]  # agent, generation


class AuthorizationCache:
    """The gateway's `Authorizer`. `run` must be running while it is used."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._host: AgentHost | None = None
        self._authorizations: dict[_RunKey, Authorization] = {}
        self._tokens: dict[bytes, _RunKey] = {}
        self._revocations: dict[_RunKey, asyncio.Future[None]] = {}
        self._synced = asyncio.Event()
        self._denials = DenialReporter(self._require_host)

    async def run(self) -> None:
        """Runs until cancelled. Reconnects as needed; losing the connection drops all
        authorizations."""
        pause = _MIN_PAUSE
        reporter = asyncio.create_task(self._denials.send(), name="refusals")
        try:
            while True:
                try:
                    async with open_agent_host(self._paths) as self._host:
                        pause = _MIN_PAUSE
                        try:
                            await self._subscribe(self._host)
                        finally:
                            self._disconnect()
                except (AdapterError, OSError) as error:
                    log.warning("agent-host connection lost", reason=str(error))
                await asyncio.sleep(pause)
                pause = min(_MAX_PAUSE, 2 * pause)
        finally:
            reporter.cancel()
            await asyncio.gather(reporter, return_exceptions=True)

    async def wait_synced(self) -> None:
        """Returns once the initial set has arrived."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        """Whether the subscription to agent-host is up."""
        return self._synced.is_set()

    def identify(self, bearer: str) -> Authorization:
        """Looks up the token by its hash, then compares in constant time. Raises AccessDenied."""
        digest = hashlib.sha256(bearer.encode("utf-8", "surrogatepass")).digest()
        key = self._tokens.get(digest)
        authorization = None if key is None else self._authorizations.get(key)
        if authorization is None or not hmac.compare_digest(
            bytes.fromhex(authorization.token_sha256), digest
        ):
            raise AccessDenied("token", "the token is unknown, or its agent has ended")
        return authorization

    async def check(
        self,
        caller: Authorization,
        scope: Scope,
        operation: str,
        value: str,
        *,
        method: str = "",
        path: str = "",
        consume: bool = True,
    ) -> None:
        """Checks the current rights of the agent and of all its ancestors. Raises AccessDenied."""
        rule = f"{scope} {operation}"
        current = self._find_current(caller, rule)
        is_metered = False
        for rights in (current.rights, *(ancestor.rights for ancestor in current.ancestors)):
            right = _find_right(rights, scope, operation, value, method, path)
            if right is None:
                raise AccessDenied(rule, f"no right of the agent allows {scope} {operation} here")
            is_metered = is_metered or right.uses is not None or right.rate is not None
        if is_metered and consume:
            try:
                await self._require_host().use_grant(
                    current.agent_id,
                    current.generation,
                    scope=scope,
                    operation=operation,
                    value=value,
                    method=method,
                    path=path,
                )
            except PermissionDenied as error:
                raise AccessDenied(rule, error.message) from error
            except (AdapterError, ConnectionError) as error:
                raise AccessDenied(rule, "cannot count uses: agent-host does not answer") from error
            self._find_current(caller, rule)  # the agent may have ended during the call

    async def approve(
        self,
        caller: Authorization,
        kind: str,
        value: str,
        parameters: Mapping[str, Any],
        reason: str = "",
        *,
        for_next_use: bool = False,
    ) -> None:
        """Waits as long as agent-host does. Raises AccessDenied."""
        rule = f"approval {kind}"
        current = self._find_current(caller, rule)
        seconds = float(current.limits["approval_timeout_seconds"])
        try:
            async with asyncio.timeout(seconds + _MARGIN_SECONDS):
                await self._require_host().request_approval(
                    caller.agent_id,
                    caller.generation,
                    kind=kind,
                    value=value,
                    parameters=parameters,
                    words=reason,
                    hold=for_next_use,
                )
        except (PermissionDenied, ValidationError) as error:
            raise AccessDenied(rule, error.message) from error
        except (AdapterError, ConnectionError, TimeoutError) as error:
            raise AccessDenied(
                rule, "approval is not possible: agent-host does not answer"
            ) from error
        self._find_current(caller, rule)  # the agent may have ended during the wait

    def revocation(self, caller: Authorization) -> "asyncio.Future[None]":
        """All callers share one future, replaced once it is done: get it before `check`, and check
        again when it is done."""
        key = (caller.agent_id, caller.generation)
        if key in self._authorizations:
            return self._revocations.setdefault(key, asyncio.get_running_loop().create_future())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def report_denial(
        self, caller: Authorization, layer: Layer, rule: str, detail: str = ""
    ) -> None:
        """Queues the report for agent-host; delivery is retried."""
        self._denials.add((caller.agent_id, caller.generation, layer, rule), detail)

    def _find_current(self, caller: Authorization, rule: str) -> Authorization:
        authorization = self._authorizations.get((caller.agent_id, caller.generation))
        if authorization is None:
            raise AccessDenied(rule, "the agent has ended, or agent-host is unreachable")
        return authorization

    def _require_host(self) -> AgentHost:
        if self._host is None:
            raise ConnectionError("not connected to agent-host")
        return self._host

    async def _subscribe(self, host: AgentHost) -> None:
        async with aclosing(host.watch_authorizations()) as changes:  # type: ignore[type-var]
            async for change in changes:
                self._apply(change)

    def _apply(self, change: Mapping[str, Any]) -> None:
        kind = change["kind"]
        if kind == "whole":
            self._synced.set()
        elif kind == "over":
            self._remove((change["agent_id"], change["generation"]))
        else:
            authorization = authorization_from_json(change["authorization"])
            for key in [
                other
                for other in self._authorizations
                if other[0] == authorization.agent_id and other[1] != authorization.generation
            ]:
                self._remove(key)
            key = (authorization.agent_id, authorization.generation)
            self._authorizations[key] = authorization
            self._tokens[bytes.fromhex(authorization.token_sha256)] = key
            self._signal_revocation(key)

    def _remove(self, key: _RunKey) -> None:
        if (authorization := self._authorizations.pop(key, None)) is not None:
            self._tokens.pop(bytes.fromhex(authorization.token_sha256), None)
        self._signal_revocation(key)

    def _signal_revocation(self, key: _RunKey) -> None:
        if (future := self._revocations.pop(key, None)) is not None and not future.done():
            future.set_result(None)

    def _disconnect(self) -> None:
        self._synced.clear()
        self._authorizations.clear()
        self._tokens.clear()
        for key in list(self._revocations):
            self._signal_revocation(key)
        self._host = None


def _find_right(
    rights: tuple[Right, ...], scope: Scope, operation: str, value: str, method: str, path: str
) -> Right | None:
    grant_id = find_allowing_right(rights, scope, operation, value, method=method, path=path)
    match = (
        next((right for right in rights if right.grant_id == grant_id), None) if grant_id else None
    )
    if match is not None and match.expires_at is not None and match.expires_at <= time.time():
        return None
    return match
