"""What another run of the same program left: memory, pods, beads, events, files, and an identity by
name.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agentbox.core.paths import environment
from agentbox.sandbox.attacks.case import (
    ATTACKER_NAME,
    PASSED,
    VICTIM_NOTE,
    AttackGroup,
    TargetInfo,
    TargetMissing,
)
from agentbox.sandbox.attacks.rpc_client import require_agent_api, rpc

SUITE = AttackGroup("state")
_TESTS: Final = "tests/api/test_state_of_runs.py"
_RUN_TESTS: Final = (
    f"{_TESTS}::test_two_successive_runs_of_one_program",
    f"{_TESTS}::test_two_concurrent_runs_of_one_program",
)
_NOTHING: Final = "nothing of it"
_BY_API: Final = {_NOTHING: "API"}


@SUITE.case(
    "memory",
    "reads, lists and searches the memory of another run of its program",
    _BY_API,
    tests=_RUN_TESTS,
    since=2,
)
def _memory(facts: TargetInfo) -> str:
    state = _state(facts)
    return _search(
        [
            ("memory.retrieve", {"key": "note"}),
            ("memory.list", {}),
            ("memory.list", {"prefix": "n"}),
            ("memory.list", {"ns": f"state.{state}"}),
            ("memory.search", {"query": "cheese", "mode": "text"}),
            ("memory.search", {"query": "a fact about cheese"}),
            ("memory.search", {"query": "cheese", "namespaces": [f"state.{state}"]}),
        ]
    )


@SUITE.case(
    "pods",
    "reads and lists the pods of another run of its program, by path",
    _BY_API,
    tests=_RUN_TESTS,
    since=2,
)
def _pods(facts: TargetInfo) -> str:
    state = _state(facts)
    paths = (
        "notes/note",
        f"state/{state}/notes/note",
        f"../{state}/notes/note",
        f"agents/{ATTACKER_NAME}/notes/note",
    )
    directories = (
        "",
        "notes/",
        f"state/{state}/",
        f"../{state}/",
        f"agents/{ATTACKER_NAME}/",
        "state/",
    )
    return _search(
        [
            *(("pod.read", {"path": path}) for path in paths),
            *(("pod.list", {"path": path}) for path in directories),
        ],
        extra_words=("notes/",),
    )


@SUITE.case(
    "beads",
    "finds a bead of another run of its program by id, tag, list, key and claim",
    _BY_API,
    tests=_RUN_TESTS,
    since=2,
)
def _beads(facts: TargetInfo) -> str:
    _state(facts)
    bead, maker = facts.neighbour.bead, f"urn:agentbox:agent:{facts.neighbour.agent_id}"
    return _search(
        [
            ("bead.show", {"id": bead}),
            ("bead.list", {}),
            ("bead.list", {"tag": "left"}),
            ("bead.list", {"tag": f"for:{ATTACKER_NAME}"}),
            ("bead.list", {"tag": "for:"}),
            ("bead.list", {"creator": maker}),
            ("bead.list", {"parent_id": bead}),
            ("bead.ready", {}),
            ("bead.ready", {"parent_id": bead}),
            ("bead.create", {"title": "x", "dedup_key": "left"}),
            ("bead.claim_next", {}),
            ("bead.claim_next", {"tags": ["left"]}),
            ("bead.claim_next", {"tags": [f"for:{ATTACKER_NAME}"]}),
            ("bead.claim", {"id": bead}),
        ]
    )


@SUITE.case(
    "lists",
    "finds another run of its program in the lists of agents and events",
    _BY_API,
    tests=_RUN_TESTS,
    since=2,
)
def _lists(facts: TargetInfo) -> str:
    params = {"id": facts.neighbour.agent_id}
    _state(facts)
    return _search(
        [
            ("agent.list", {}),
            ("agent.list", {"name": ATTACKER_NAME}),
            ("agent.status", params),
            ("agent.recv", params),
            ("event.read", {"since": 0, "limit": 500}),
            ("event.read", {"since": 0, "types": "note.left"}),
        ],
        extra_words=(facts.neighbour.state,),
    )


@SUITE.case(
    "home",
    "finds files of another run of its program in its own HOME and temporary directory",
    {_NOTHING: "agent host"},
    tests=_RUN_TESTS,
    since=2,
)
def _home(facts: TargetInfo) -> str:
    _state(facts)
    variables = environment()
    for top in (variables.get("HOME", ""), variables.get("TMPDIR", "")):
        for directory, _, names in os.walk(top) if top else ():
            for path in (Path(directory, name) for name in names):
                if path.name == "secret":  # the name of the victim's secret
                    return f"{PASSED}: {path}"
    return _NOTHING


@SUITE.case(
    "identity",
    "takes the identity of an agent of the manifest by the name of its program",
    {"none": "agent host"},
    tests=("tests/api/test_states.py::test_a_command_has_no_identity_of_the_manifest",),
    since=2,
)
def _identity(_facts: TargetInfo) -> str:
    require_agent_api()
    hello: dict[str, Any] = rpc("hello", {}).get("result", {})
    policy, tag = hello.get("policy", {}), hello.get("own", {}).get("beads", "no answer")
    rights = [tag, *policy.get("children", ()), *policy.get("secrets", ())]
    return f"{PASSED}: {rights}" if any(rights) else "none"


def _state(facts: TargetInfo) -> str:
    """The victim's state. Raises TargetMissing if it left nothing."""
    require_agent_api()
    if not facts.neighbour.state:
        raise TargetMissing("the victim agent left nothing")
    return facts.neighbour.state


def _search(calls: Iterable[tuple[str, dict[str, Any]]], extra_words: tuple[str, ...] = ()) -> str:
    """Whether any answer contains the victim's note, or one of those words."""
    for method, params in calls:
        answer = rpc(method, params)
        text = json.dumps(answer.get("result"))
        if any(word in text for word in (VICTIM_NOTE, *extra_words)):
            return f"{PASSED}: {method} {json.dumps(params)}"
    return _NOTHING
