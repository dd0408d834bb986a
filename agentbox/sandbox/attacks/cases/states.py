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
from agentbox.sandbox.attacks.gateway_client import post
from agentbox.sandbox.attacks.rpc_client import require_agent_api, rpc

SUITE = AttackGroup("state")
_TESTS: Final = "tests/api/test_state_of_runs.py"
_RUN_TESTS: Final = (
    f"{_TESTS}::test_two_successive_runs_of_one_program",
    f"{_TESTS}::test_two_concurrent_runs_of_one_program",
)
_NOTHING: Final = "nothing of it"
_FORGED: Final = "a-forged-skill"
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


@SUITE.case(
    "sandboxes",
    "runs a program in another run, and reads and writes its files, as those who may use sandboxes",
    {"no such call": "agent-api"},
    tests=(
        "tests/api/test_sandboxes.py::test_scopes",
        "tests/api/test_sandboxes.py::test_an_idempotency_key_is_the_token_s_own",
        "tests/unit/agents/test_sandbox_files.py::test_files_of_a_sandbox",
    ),
    since=4,
)
def _sandboxes(facts: TargetInfo) -> str:
    _state(facts)
    other = facts.neighbour.agent_id
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("sandbox.exec", {"sandbox_id": other, "argv": ["true"], "request_id": "1"}),
        ("sandbox.stream", {"sandbox_id": other, "n": 1, "since": 0}),
        ("sandbox.stdin", {"sandbox_id": other, "n": 1, "data": "", "eof": True}),
        ("sandbox.read_file", {"sandbox_id": other, "path": "tmp/secret", "offset": 0}),
        ("sandbox.list", {}),
    )
    for method, params in calls:
        if "result" in rpc(method, params):
            return f"{PASSED}: {method}"
    routes = (
        ("POST", f"/v1/sandboxes/{other}/exec", b'{"argv": ["true"]}'),
        ("GET", f"/v1/sandboxes/{other}/exec/1/stream", b""),
        ("GET", f"/v1/sandboxes/{other}/files/tmp/secret", b""),
        ("PUT", f"/v1/sandboxes/{other}/files/tmp/secret", b"x"),
        ("DELETE", f"/v1/sandboxes/{other}", b""),
    )
    for method, path, body in routes:
        if (status := post(path, body, method=method)) not in ("403", "404", "405"):
            return f"{PASSED}: {method} {path}: {status}"
    return "no such call"


@SUITE.case(
    "skill",
    "leaves a skill in its HOME under the name of one of the box's own",
    {"the box's own": "agent-api"},
    tests=(
        "tests/unit/skills/test_command.py::test_a_name_of_the_corpus_is_taken",
        "tests/unit/agents/test_skill_links.py::test_a_skill_that_is_no_longer_offered_goes",
    ),
    since=4,
)
def _skill(_facts: TargetInfo) -> str:
    """Agents are told of the box's own text, whatever a folder of theirs has."""
    require_agent_api()
    offered = rpc("skill.list", {}).get("result") or {}
    names = [row["name"] for row in offered.get("skills", ())]
    name = names[0] if names else "git-commits"
    forged = f"---\nname: {name}\ndescription: {_FORGED}\n---\n{_FORGED}\n"
    for directory in (".agents/skills", ".claude/skills"):
        folder = Path(environment().get("HOME", "."), directory, name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.is_symlink():
            folder.unlink()
        folder.mkdir(exist_ok=True)
        (folder / "SKILL.md").write_text(forged)
    calls = [("skill.list", {}), ("skill.read", {"name": name}), ("hello", {})]
    if any(_FORGED in json.dumps(rpc(*call)) for call in calls):
        return PASSED
    return "the box's own"


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
