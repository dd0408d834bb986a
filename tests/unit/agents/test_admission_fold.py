"""Admission is one fold over frozen records: what it makes of a request, and that it has no effect."""

import ast
import gc
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest
from support.admission import (
    ADMIN,
    BELOW,
    CONFIG,
    INPUTS,
    LEAD,
    LEAD_ITSELF,
    NOW,
    OPERATOR,
    PARENT,
    READER,
    ROOM,
)

import agentbox.agents.admission
from agentbox.agents.admission.admit import UNCOUNTED, admit
from agentbox.agents.admission.draft import Draft, HostUsage
from agentbox.contracts.orchestrator import Constraint, Limits
from agentbox.core.slot_errors import AdapterError


def test_the_manifest_fills_in_what_the_spec_leaves_open() -> None:
    """Command, policy, limits and grants are those of the table, and the caller's bounds on them."""
    bound = Constraint(scope="env", pattern="LAB_SECRET", expires_s=60, uses=3)
    draft = admit(replace(LEAD, constraints=(bound,)), OPERATOR, INPUTS)
    assert draft.spec.argv == ("lead",)
    assert (draft.spec.profile, draft.grant_set.root) == ("standard", "standard")
    assert draft.table is CONFIG.agents["lead"]
    assert (draft.limits.fds, draft.grant_set.limits["fds"]) == (512, 512)
    assert all(getattr(draft.limits, field.name) is not None for field in fields(Limits))
    (secret,) = draft.grant_set.secrets
    assert (secret.right.expires_at, secret.right.uses) == (NOW + 60, 3)
    assert all(grant.right.expires_at is None for grant in draft.grant_set.grants)


def test_a_child_has_its_parents_bounds() -> None:
    """Limits but the wall clock, and the ends of the parent's grants."""
    ending = tuple(
        replace(secret, right=replace(secret.right, expires_at=NOW + 5))
        for secret in PARENT.grant_set.secrets
    )
    parent = replace(PARENT, grant_set=replace(PARENT.grant_set, secrets=ending))
    draft = admit(READER, LEAD_ITSELF, replace(INPUTS, parent=parent))
    assert (draft.limits.fds, CONFIG.agents["reader"].limits.fds) == (512, 1024)
    assert [secret.right.expires_at for secret in draft.grant_set.secrets] == [NOW + 5]
    short = replace(parent, limits=replace(parent.limits, wall_seconds=1))
    assert admit(READER, LEAD_ITSELF, replace(INPUTS, parent=short)).limits == draft.limits


def test_an_admin_exceeds_limits_and_the_manifest() -> None:
    """Scope admin lifts both, but no capacity."""
    spec = replace(LEAD, argv=("true",), limits=Limits(fds=4096))
    assert admit(spec, ADMIN, INPUTS).limits.fds == 4096
    with pytest.raises(AdapterError):
        admit(spec, ADMIN, replace(INPUTS, usage=HostUsage()))
    assert admit(spec, ADMIN, replace(INPUTS, usage=HostUsage()), UNCOUNTED).spec.argv == ("true",)


EFFECTS = frozenset(
    {"posix", "_io", "io", "time", "select", "_socket", "resource", "apsw", "_asyncio", "fcntl"}
)


def test_the_fold_has_no_effect() -> None:
    """It opens nothing, reads no clock and leaves its arguments as they were; random bytes for the
    ids of grants are all that it takes from the system."""
    found: set[str] = set()

    def observe(_frame: Any, event: str, function: Any) -> None:
        if event == "c_call" and (function.__module__ or "") in EFFECTS:
            found.add(f"{function.__module__}.{function.__name__}")

    before = repr((BELOW, LEAD_ITSELF, READER))
    first = admit(READER, LEAD_ITSELF, BELOW)  # also reads the data of the package, once a process
    gc.disable()  # a collection calls what other modules have registered for it
    sys.setprofile(observe)
    try:
        second = admit(READER, LEAD_ITSELF, BELOW)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert found == {"posix.urandom"}
    assert repr((BELOW, LEAD_ITSELF, READER)) == before
    assert without_ids(first) == without_ids(second)
    assert first != second


def without_ids(draft: Draft) -> Draft:
    """The same grants, numbered."""
    grants, secrets = (
        tuple(
            replace(grant, right=replace(grant.right, grant_id=str(index)))
            for index, grant in enumerate(held)
        )
        for held in (draft.grant_set.grants, draft.grant_set.secrets)
    )
    return replace(draft, grant_set=replace(draft.grant_set, grants=grants, secrets=secrets))


@pytest.mark.parametrize("value", [OPERATOR, PARENT, ROOM, INPUTS, admit(LEAD, OPERATOR, INPUTS)])
def test_what_it_reads_and_returns_is_frozen(value: Any) -> None:
    """No step can change what another one has seen."""
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(value)[0].name, None)


def test_it_imports_no_effect() -> None:
    """Of the standard library only types and helpers, of agent-host only its configuration."""
    allowed = {"collections.abc", "dataclasses", "functools", "typing"}
    (folder,) = agentbox.agents.admission.__path__
    for path in Path(folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [node.module]
                if isinstance(node, ast.ImportFrom)
                else [one.name for one in node.names]
                if isinstance(node, ast.Import)
                else []
            )
            for name in names:
                assert name in allowed or name.startswith("agentbox."), f"{path.name}: {name}"
                assert not name.startswith("agentbox.agents.") or name.startswith(
                    ("agentbox.agents.admission.", "agentbox.agents.config")
                ), f"{path.name}: {name}"


def test_it_loads_no_other_part_of_agent_host() -> None:
    """Neither directly nor through another module: a new interpreter shows it."""
    code = (
        "import sys, agentbox.agents.admission.admit\n"
        "print(*sorted({'.'.join(n.split('.')[:3]) for n in sys.modules "
        "if n.startswith('agentbox.agents.')}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["agentbox.agents.admission", "agentbox.agents.config"]
