"""What another run of the same program left: its memory, pods, beads, events and files, and an identity by a name."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agentbox.core.paths import environment
from agentbox.sandbox.attacks.door import rpc, there
from agentbox.sandbox.attacks.line import NAME, NOTE, PASSED, Absent, Facts, Table

TABLE = Table("state")
_TESTS: Final = "tests/api/test_state_of_runs.py"
_BOTH: Final = (
    f"{_TESTS}::test_two_successive_runs_of_one_program",
    f"{_TESTS}::test_two_concurrent_runs_of_one_program",
)
_NOTHING: Final = "nothing of it"
_BY_API: Final = {_NOTHING: "API"}


@TABLE.line(
    "memory", "reads, lists and searches the memory of another run of its program", _BY_API, tests=_BOTH, since=2
)
def _memory(facts: Facts) -> str:
    state = _state(facts)
    return _found([
        ("memory.retrieve", {"key": "note"}), ("memory.list", {}), ("memory.list", {"prefix": "n"}), ("memory.list", {"ns": f"state.{state}"}),
        ("memory.search", {"query": "cheese", "mode": "text"}), ("memory.search", {"query": "a fact about cheese"}),
        ("memory.search", {"query": "cheese", "namespaces": [f"state.{state}"]}),
    ])  # fmt: skip


@TABLE.line("pods", "reads and lists the pods of another run of its program, by path", _BY_API, tests=_BOTH, since=2)
def _pods(facts: Facts) -> str:
    state = _state(facts)
    own = ("notes/note", f"state/{state}/notes/note", f"../{state}/notes/note", f"agents/{NAME}/notes/note")
    folders = ("", "notes/", f"state/{state}/", f"../{state}/", f"agents/{NAME}/", "state/")
    return _found([
        *(("pod.read", {"path": path}) for path in own), *(("pod.list", {"path": path}) for path in folders),
    ], also=("notes/",))  # fmt: skip


@TABLE.line(
    "beads", "finds a bead of another run of its program by id, tag, list, key and claim", _BY_API, tests=_BOTH, since=2
)
def _beads(facts: Facts) -> str:
    _state(facts)
    bead, maker = facts.neighbour.bead, f"urn:agentbox:agent:{facts.neighbour.agent_id}"
    return _found([
        ("bead.show", {"id": bead}), ("bead.list", {}), ("bead.list", {"tag": "left"}), ("bead.list", {"tag": f"for:{NAME}"}),
        ("bead.list", {"tag": "for:"}), ("bead.list", {"creator": maker}), ("bead.list", {"parent_id": bead}), ("bead.ready", {}),
        ("bead.ready", {"parent_id": bead}), ("bead.create", {"title": "x", "dedup_key": "left"}), ("bead.claim_next", {}),
        ("bead.claim_next", {"tags": ["left"]}), ("bead.claim_next", {"tags": [f"for:{NAME}"]}), ("bead.claim", {"id": bead}),
    ])  # fmt: skip


@TABLE.line(
    "lists", "finds another run of its program in the lists of agents and events", _BY_API, tests=_BOTH, since=2
)
def _lists(facts: Facts) -> str:
    other = {"id": facts.neighbour.agent_id}
    _state(facts)
    return _found([
        ("agent.list", {}), ("agent.list", {"name": NAME}), ("agent.status", other), ("agent.recv", other),
        ("event.read", {"since": 0, "limit": 500}), ("event.read", {"since": 0, "types": "note.left"}),
    ], also=(facts.neighbour.state,))  # fmt: skip


@TABLE.line(
    "home",
    "finds files of another run of its program in its own HOME and temporary folder",
    {_NOTHING: "agent host"},
    tests=_BOTH,
    since=2,
)
def _home(facts: Facts) -> str:
    _state(facts)
    known = environment()
    for top in (known.get("HOME", ""), known.get("TMPDIR", "")):
        for folder, _, names in os.walk(top) if top else ():
            for path in (Path(folder, name) for name in names):
                if path.name == "secret":  # as the neighbour calls its own
                    return f"{PASSED}: {path}"
    return _NOTHING


@TABLE.line("identity", "takes the identity of an agent of the manifest by what its program is called", {"none": "agent host"},
            tests=("tests/api/test_states.py::test_a_command_has_no_identity_of_the_manifest",), since=2)  # fmt: skip
def _identity(_facts: Facts) -> str:
    there()
    said: dict[str, Any] = rpc("hello", {}).get("result", {})
    policy, tag = said.get("policy", {}), said.get("own", {}).get("beads", "no answer")
    held = [tag, *policy.get("children", ()), *policy.get("secrets", ())]
    return f"{PASSED}: {held}" if any(held) else "none"


def _state(facts: Facts) -> str:
    """Of the neighbour. Raises Absent where it left nothing."""
    there()
    if not facts.neighbour.state:
        raise Absent("no neighbour left anything")
    return facts.neighbour.state


def _found(calls: Iterable[tuple[str, dict[str, Any]]], also: tuple[str, ...] = ()) -> str:
    """Whether any answer holds the neighbour's note, or one of those words."""
    for method, given in calls:
        answer = rpc(method, given)
        text = json.dumps(answer.get("result"))
        if any(word in text for word in (NOTE, *also)):
            return f"{PASSED}: {method} {json.dumps(given)}"
    return _NOTHING
