"""The contract suite of the pods slot: P1 to P11, for any implementation that patches JSON and has
a quota.
"""

from typing import Any

from agentbox.contracts.pods import Pods
from agentbox_testkit.contracts.common import CommonContract
from agentbox_testkit.contracts.pods_common import JSON
from agentbox_testkit.contracts.pods_containers import ContainerClauses
from agentbox_testkit.contracts.pods_objects import CAP, QUOTA, QUOTA_OBJECTS, ObjectClauses

OPTIONS = {
    "max_object": CAP,
    "quota": QUOTA,
    "quota_objects": QUOTA_OBJECTS,
}  # options of the store under test


class PodsContract(ObjectClauses, ContainerClauses, CommonContract):
    """The complete suite."""

    contract = Pods
    calls = {  # noqa: RUF012 - the base declares it ClassVar
        "write": (("a", b""), {}),
        "read": (("a",), {}),
        "head": (("a",), {}),
        "patch": (("a", b"[]"), {}),
        "delete": (("a",), {}),
        "list": ((), {}),
    }

    async def use(self, adapter: Any) -> list[Any]:
        meta, _ = await adapter.write("a/b", b"{}", content_type=JSON)
        stored = await adapter.read("a/b")
        assert b"".join([chunk async for chunk in stored.body]) == b"{}"
        return [meta, stored.meta, await adapter.head("a/"), *(await adapter.list("a/")).items]
