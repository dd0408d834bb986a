"""Bindings of a token besides its scopes: a prefix of pod paths, one of memory namespaces, a source
of events.
"""

from collections.abc import Mapping, Sequence

from agentbox.api.auth.authentication import Caller, Check
from agentbox.core.slot_errors import PermissionDenied


def check_pod(caller: Caller, path: str) -> None:
    """Raises PermissionDenied for a path outside the prefix that the token is bound to."""
    _check(caller.pod_prefix, path, "pods:path", "pod")


def check_namespace(caller: Caller, namespace: str) -> None:
    """As `check_pod`, for a memory namespace. An agent has exactly one namespace, not a prefix."""
    if caller.agent_id and namespace != caller.memory_prefix:
        raise PermissionDenied(
            f"cannot use this namespace: an agent has {caller.memory_prefix}",
            scope="memory:namespace",
        )
    _check(caller.memory_prefix, namespace, "memory:namespace", "namespace")


def _check(prefix: str, name: str, scope: str, kind: str) -> None:
    if not name.startswith(prefix):
        raise PermissionDenied(
            f"cannot use this {kind}: the token is bound to {kind}s that start with {prefix}",
            scope=scope,
        )


async def _check_namespace(caller: Caller, namespace: str | None) -> None:
    check_namespace(caller, namespace or "")


async def _check_all(caller: Caller, namespaces: Sequence[str]) -> None:
    for namespace in namespaces:
        check_namespace(caller, namespace)


# By argument of the slot memory; a bound token must name its own namespaces, for statistics too.
MEMORY_CHECKS: Mapping[str, Check] = {"namespace": _check_namespace, "namespaces": _check_all}


def bound_source(caller: Caller, source: str | None) -> str:
    """The only source that the caller's events may have; "" for an unbound token. Raises
    PermissionDenied.
    """
    if caller.event_source and source not in (None, caller.event_source):
        raise PermissionDenied(
            f"cannot append events of {source}: the token is bound to {caller.event_source}",
            scope="events:source",
        )
    return caller.event_source
