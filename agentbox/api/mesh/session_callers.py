"""Callers with the token of a mesh session: boxes that have joined this host."""

from typing import TYPE_CHECKING

from agentbox.api.auth.authentication import Caller

if TYPE_CHECKING:
    from agentbox.mesh.host.host import Host

SESSION = "mesh:session"


def box_principal(instance_id: str) -> str:
    """The principal of a box on its host; its own callers are names below it."""
    return f"urn:agentbox:box:{instance_id}"


class SessionCallers:
    """Without a host there are none."""

    def __init__(self, host: "Host | None") -> None:
        self._host = host

    def find(self, sha256: bytes) -> Caller | None:
        """The caller with the session token of that hash: a box, restricted to its own data."""
        holder = self._host.find_holder(sha256) if self._host is not None else None
        if holder is None or holder.reason:
            return None
        return Caller(
            box_principal(holder.instance_id),
            holder.scopes | {SESSION},
            pod_prefix=f"boxes/{holder.instance_id}/",
            box=holder.instance_id,
            session=holder.session_id,
        )

    def find_ended(self, sha256: bytes) -> Caller | None:
        """The caller with the token of an ended session; it may only get the reason of the end."""
        holder = self._host.find_holder(sha256) if self._host is not None else None
        return (
            Caller(scopes=frozenset({SESSION}), session=holder.session_id)
            if holder and holder.reason
            else None
        )
