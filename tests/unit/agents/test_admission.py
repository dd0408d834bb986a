"""Admission refuses: each step with its errors, and the steps in their order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.admission import (
    ADMIN,
    BELOW,
    CONFIG,
    INPUTS,
    LEAD,
    LEAD_ITSELF,
    OPERATOR,
    PARENT,
    READER,
    ROOM,
)

from agentbox.agents.admission.admit import STEPS, admit
from agentbox.agents.admission.draft import AdmissionInputs, HostUsage, Requester
from agentbox.contracts.orchestrator import AgentSpec, Constraint, Limits
from agentbox.core.slot_errors import AdapterError, QuotaExceeded
from agentbox.policy.limits.reserve import FILES, FILES_PER_AGENT, TASKS_PER_AGENT


def used(**changes: Any) -> AdmissionInputs:
    return replace(INPUTS, usage=replace(ROOM, **changes))


def configured(**changes: Any) -> AdmissionInputs:
    return replace(INPUTS, config=replace(CONFIG, **changes))


def ad_hoc(**more: Any) -> AgentSpec:
    return AgentSpec(**{"name": "x", "argv": ("true",), **more})


REFUSED: Mapping[str, list[tuple[AgentSpec, Requester, AdmissionInputs, str, str]]] = {
    "check_form": [
        (ad_hoc(name=""), OPERATOR, INPUTS, "ValidationError", "/name must not be empty"),
    ],
    "resolve_definition": [
        (AgentSpec(name="x"), OPERATOR, INPUTS, "ValidationError", "/argv must name a program"),
        (ad_hoc(agent="nobody"), OPERATOR, INPUTS, "ValidationError", "must be an agent of the"),
        (ad_hoc(workspace="direct"), OPERATOR, INPUTS, "PermissionDenied", "only an admin"),
        (ad_hoc(), LEAD_ITSELF, BELOW, "PermissionDenied", "only agents defined in the manifest"),
        (AgentSpec(name="o", agent="off"), OPERATOR, INPUTS, "SpawnError", "off.enabled is false"),
        (
            replace(LEAD, argv=("true",), profile="minimal"),
            OPERATOR,
            INPUTS,
            "PermissionDenied",
            "argv, profile must not differ from the manifest",
        ),
    ],
    "resolve_parent": [
        (READER, OPERATOR, INPUTS, "NotFound", "cannot find agent lead-1"),
        (
            READER,
            OPERATOR,
            replace(INPUTS, parent=replace(PARENT, over=True, state="exited")),
            "InvalidTransition",
            "cannot use agent lead-1 as parent: it has ended",
        ),
        (
            READER,
            OPERATOR,
            replace(INPUTS, parent=replace(PARENT, depth=2)),
            "QuotaExceeded",
            "cannot start another agent: max_depth is 2",
        ),
    ],
    "effective_limits": [
        (
            replace(LEAD, limits=Limits(fds=513)),
            OPERATOR,
            INPUTS,
            "QuotaExceeded",
            "cannot raise limits.fds to 513: the maximum is 512",
        ),
        (
            ad_hoc(limits=Limits(wall_seconds=0)),
            OPERATOR,
            replace(INPUTS, once=True),
            "QuotaExceeded",
            "cannot raise limits.run_wall_seconds to 0",
        ),
    ],
    "resolve_policy": [
        (ad_hoc(profile="nothing"), OPERATOR, INPUTS, "SpawnError", "unknown profile 'nothing'"),
        (ad_hoc(profile="unrestricted"), ADMIN, INPUTS, "SpawnError", "unknown profile"),
        (AgentSpec(name="k", agent="key"), OPERATOR, INPUTS, "SpawnError", "HOUSE_KEY is a prov"),
    ],
    "apply_constraints": [
        (
            replace(LEAD, constraints=(Constraint(scope="llm", uses=1),)),
            OPERATOR,
            INPUTS,
            "ValidationError",
            "/constraints/0 matches no grant",
        ),
        (
            replace(LEAD, constraints=(Constraint(scope="fs", rate=1),)),
            OPERATOR,
            INPUTS,
            "ValidationError",
            "/constraints/0 cannot limit the uses",
        ),
    ],
    "restrict_to_parent": [
        (replace(READER, parent_id=None), LEAD_ITSELF, INPUTS, "PermissionDenied", "its own chil"),
        (
            READER,
            replace(LEAD_ITSELF, principal="urn:agentbox:agent:else"),
            BELOW,
            "PermissionDenied",
            "an agent may start only its own children",
        ),
        (
            replace(READER, name="o", agent="other"),
            LEAD_ITSELF,
            BELOW,
            "PermissionDenied",
            "lead has no right to start it",
        ),
        (
            replace(READER, name="w", agent="wide"),
            LEAD_ITSELF,
            BELOW,
            "PermissionDenied",
            "it would have rights that lead does not have: net tcp 5432",
        ),
        (
            replace(READER, parent_id="lead-1"),
            OPERATOR,
            replace(
                BELOW,
                parent=replace(PARENT, grant_set=replace(PARENT.grant_set, secrets=())),
            ),
            "PermissionDenied",
            "secret LAB_SECRET",
        ),
    ],
    "check_capacity": [
        (LEAD, ADMIN, used(running={"": 2, "reader": 1}), "QuotaExceeded", "max_agents is 3"),
        (
            LEAD,
            ADMIN,
            replace(configured(box_tasks=TASKS_PER_AGENT), usage=replace(ROOM, running={"": 1})),
            "QuotaExceeded",
            "resources.pids allows at most 1 agents",
        ),
        (
            LEAD,
            ADMIN,
            used(open_files=FILES + FILES_PER_AGENT, running={"": 1}),
            "QuotaExceeded",
            "resources.nofile allows at most 1 agents",
        ),
        (LEAD, ADMIN, used(disk_free=(64 << 20) - 1), "QuotaExceeded", "63 MiB free, but 64 MiB"),
        (
            LEAD,
            ADMIN,
            used(disk_free=(25 << 20) - 1, disk_size=100 << 20),
            "QuotaExceeded",
            "24 MiB free, but 25 MiB",
        ),
        (
            LEAD,
            ADMIN,
            used(running={"lead": 2}),
            "QuotaExceeded",
            "cannot start another lead: 2 of at most 2 instances are running",
        ),
    ],
}


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in REFUSED.items() for case in cases]
)
def test_each_step_refuses(
    name: str, case: tuple[AgentSpec, Requester, AdmissionInputs, str, str]
) -> None:
    """The steps before it let the agent pass; it raises its error, and so does the whole fold."""
    spec, requester, inputs, kind, words = case
    index = [step.__name__ for step in STEPS].index(name)
    admit(spec, requester, inputs, STEPS[:index])
    for steps in (STEPS[: index + 1], STEPS):
        with pytest.raises(AdapterError, match=words) as caught:
            admit(spec, requester, inputs, steps)
        assert type(caught.value).__name__ == kind


def test_every_step_has_a_case() -> None:
    """No step is left out above."""
    assert list(REFUSED) == [step.__name__ for step in STEPS]


def test_the_first_fault_is_told() -> None:
    """A request with a fault for each step is refused for them in the order of the steps."""
    spec = AgentSpec(
        name="",
        argv=("true",),
        workspace="direct",
        parent_id="lead-1",
        limits=Limits(fds=1 << 20),
        profile="nothing",
        constraints=(Constraint(scope="tool", pattern="no/such"),),
    )
    inputs = replace(INPUTS, usage=HostUsage(running={"lead": 3}))
    poor = replace(PARENT, grant_set=replace(PARENT.grant_set, grants=()))
    told = []
    for spec_repair, inputs_repair in (
        ({"name": "x"}, {}),
        ({"workspace": "branch"}, {}),
        ({}, {"parent": poor}),
        ({"limits": Limits()}, {}),
        ({"profile": "standard"}, {}),
        ({"constraints": ()}, {}),
        ({}, {"parent": PARENT}),
        ({}, {"usage": ROOM}),
    ):
        with pytest.raises(AdapterError) as caught:
            admit(spec, OPERATOR, inputs)
        told.append(caught.value.message)
        spec, inputs = replace(spec, **spec_repair), replace(inputs, **inputs_repair)
    assert [message.partition(": ")[2][:32] for message in told] == [
        "/name must not be empty",
        "only an admin may start an agent",
        "",
        "the maximum is 1024",
        "unknown profile 'nothing'; avail",
        "/constraints/0 matches no grant ",
        "it would have rights that lead d",
        "max_agents is 3",
    ]
    assert admit(spec, OPERATOR, inputs).parent is PARENT


def test_the_capacities_have_an_order() -> None:
    """Of several that are used up, the first is told: the slot's, then the box's, then the table's."""
    config, usage, told = (
        replace(CONFIG, box_tasks=TASKS_PER_AGENT),
        HostUsage(running={"lead": 3}, disk_size=100),
        [],
    )
    for config_repair, usage_repair in (
        ({}, {"running": {"lead": 2}}),
        ({"box_tasks": 0}, {}),
        ({}, {"open_files": ROOM.open_files}),
        ({}, {"disk_free": ROOM.disk_free}),
        ({}, {"running": {"lead": 1}}),
    ):
        with pytest.raises(QuotaExceeded) as caught:
            admit(LEAD, ADMIN, replace(INPUTS, config=config, usage=usage))
        told.append(caught.value.members["limit"])
        config, usage = replace(config, **config_repair), replace(usage, **usage_repair)
    assert told == ["max_agents", "box_tasks", "nofile", "free_reserve", "max_instances"]
    admit(LEAD, ADMIN, replace(INPUTS, config=config, usage=usage))


QUOTAS = [
    (replace(LEAD, limits=Limits(fds=513)), INPUTS, "fds", 513, 512, "limits.fds"),
    (
        *(READER, replace(INPUTS, parent=replace(PARENT, depth=2))),
        *("max_depth", 3, 2, "adapters.orchestrator.max_depth"),
    ),
    (LEAD, used(running={"lead": 2}), "max_instances", 2, 2, "agents.lead.max_instances"),
    (LEAD, used(open_files=0), "nofile", 0, 0, "resources.nofile"),
]


@pytest.mark.parametrize(("spec", "inputs", "limit", "observed", "cap", "key"), QUOTAS)
def test_a_quota_names_its_key(
    spec: AgentSpec, inputs: AdmissionInputs, limit: str, observed: int, cap: int, key: str
) -> None:
    """The error says which limit, how much of it was asked for, and the key that sets it."""
    with pytest.raises(QuotaExceeded) as caught:
        admit(spec, OPERATOR, inputs)
    members = {"limit": limit, "observed": observed, "cap": cap, "config_path": key}
    assert caught.value.members.items() >= members.items()
