"""The contract suite of the beads slot: B1 to B15."""

from typing import Any

from agentbox.contracts.beads import Beads, BeadSpec
from agentbox_testkit.contracts.beads_claims import ClaimClauses
from agentbox_testkit.contracts.beads_common import LEASE, spec
from agentbox_testkit.contracts.beads_graph import GraphClauses
from agentbox_testkit.contracts.beads_order import OrderClauses
from agentbox_testkit.contracts.beads_store import StoreClauses
from agentbox_testkit.contracts.common import CommonContract


class BeadsContract(StoreClauses, GraphClauses, ClaimClauses, OrderClauses, CommonContract):
    """The complete suite."""

    contract = Beads
    calls = {  # noqa: RUF012 - the base declares it ClassVar
        "create_epic": ((BeadSpec(title="t", creator="c"),), {}),
        "create_child": (("p", BeadSpec(title="t", creator="c")), {}),
        "add_dep": (("a", "b"), {}),
        "remove_dep": (("a", "b"), {}),
        "claim": (("a", "w"), {"lease_id": LEASE}),
        "claim_next": (("w",), {"lease_id": LEASE}),
        "heartbeat": (("a", LEASE), {}),
        "release": (("a", LEASE), {}),
        "close_bead": (("a",), {}),
        "ready": ((), {}),
        "show": (("a",), {}),
        "list": ((), {}),
    }

    async def use(self, adapter: Any) -> list[Any]:
        epic, _ = await adapter.create_epic(spec("epic"))
        child, _ = await adapter.create_child(epic.id, spec("child"))
        claim = await adapter.claim(child.id, "w", lease_id=LEASE)
        closed = await adapter.close_bead(child.id, lease_id=LEASE, result={"x": [1, 2.5, None]})
        return [epic, child, claim, closed]
