"""Attacks on the agent API: methods that extend rights, resources of other agents, odd names,
expensive messages.
"""

import json
import time
from typing import Any, Final

from agentbox.sandbox.attacks.attempts import worst
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo, TargetMissing
from agentbox.sandbox.attacks.gateway_client import exchange, keep_connection, post, token
from agentbox.sandbox.attacks.rpc_client import require_agent_api, rpc_message, send_rpc

SUITE = AttackGroup("agent-api")
_TESTS: Final = "tests/unit/gateway/test_agent_api.py"
_MESSAGES: Final = "tests/unit/gateway/test_agent_api_messages.py"
_UNKNOWN, _PARAMS, _FAILED, _DENIED = (
    "-32601",
    "-32602",
    "-32000",
    "-32001",
)  # agentbox.gateway.agent_api.errors
_FOREIGN: Final = {_DENIED: "agent-api", _FAILED: "API", _PARAMS: "agent-api"}
_PAUSE: Final = 0.1
_EVENT: Final = 60_000  # bytes of an event; the maximum is 64 KiB
_AT_ONCE: Final = 16 << 20  # bytes that agents of one state may append at once
_NOWHERE: Final = "00000000-0000-7000-8000-000000000000"


@SUITE.case(
    "no-token",
    "calls the agent API without a token, with a made-up one, with that of an agent that has ended",
    {"401": "agent-api"},
    tests=(f"{_TESTS}::test_without_a_token_of_its_own_nobody_is_answered",),
)
def _no_token(facts: TargetInfo) -> str:
    require_agent_api()
    agent_token, hello = token(), rpc_message("hello")
    forged = (
        "",
        "x" * len(agent_token),
        agent_token[:-1],
        agent_token + "x",
        *filter(None, (facts.ended_token,)),
    )
    replies = [post("/rpc", hello, bearer=bearer) for bearer in forged]
    return worst(
        f"{PASSED}: {reply}" if reply.isdecimal() and reply != "401" else reply for reply in replies
    )


@SUITE.case(
    "in-flight",
    "keeps using the token of an agent that ends, on an open connection",
    {"401": "agent-api", "closed": "agent-api"},
    isolated=True,
    tests=("tests/unit/gateway/test_following.py::test_the_end_of_an_agent_ends_its_token",),
)
def _in_flight(facts: TargetInfo) -> str:
    """The runner ends the agent that lent its token once this one reports an answer."""
    if not facts.lent_token:
        raise TargetMissing("no agent lent its token")
    hello, deadline = rpc_message("hello"), time.monotonic() + facts.patience
    with keep_connection() as send:
        if (first := send("/rpc", hello, facts.lent_token)) != "200":
            return f"before it was taken back: {first}"
        print(json.dumps({"answered": first}), flush=True)
        while time.monotonic() < deadline:
            if (reply := send("/rpc", hello, facts.lent_token)) != "200":
                return reply
            time.sleep(_PAUSE)
    return PASSED


@SUITE.case(
    "own-policy",
    "raises its own policy, limits and budget",
    {_UNKNOWN: "agent-api"},
    tests=(f"{_TESTS}::test_rights_decide_and_each_refusal_is_counted",),
)
def _raise_policy(_facts: TargetInfo) -> str:
    names = (
        "policy.set",
        "limits.set",
        "budget.set",
        "grant.add",
        "grants.mint",
        "authorization.watch",
        "config.apply",
        "__class__",
    )
    return worst(
        _rpc(name, {"profile": "unrestricted", "limits": {"memory": 1 << 40}}) for name in names
    )


@SUITE.case(
    "spawn",
    "starts an agent with more rights than it has",
    {_DENIED: "agent-api", _PARAMS: "agent-api"},
    tests=(f"{_TESTS}::test_rights_decide_and_each_refusal_is_counted",),
)
def _spawn(_facts: TargetInfo) -> str:
    requests: tuple[dict[str, Any], ...] = (
        {"name": "root"},
        {"name": "root", "profile": "unrestricted"},
        {"name": "root", "argv": ["/bin/sh"]},
        {"name": "../root"},
        {"name": ""},
        {"name": "root", "limits": {"memory": 1 << 40}},
        {"name": "root", "parent_id": None},
    )
    return worst(_rpc("agent.spawn", params) for params in requests)


@SUITE.case(
    "secrets",
    "asks for secrets that it was not granted",
    {_DENIED: "agent-api", _PARAMS: "agent-api"},
    tests=(f"{_TESTS}::test_a_secret_that_was_given",),
)
def _secrets(facts: TargetInfo) -> str:
    names = {path.rpartition("/")[2] for path in facts.secrets} | {
        "AGENTBOX_API_TOKEN",
        "../secrets/mgmt-key",
        "",
        "*",
    }
    return worst(_rpc("secret.get", {"name": name}) for name in sorted(names))


@SUITE.case(
    "other-agents",
    "ends, reads and writes to another agent",
    _FOREIGN,
    tests=(f"{_TESTS}::test_rights_decide_and_each_refusal_is_counted",),
)
def _other_agents(facts: TargetInfo) -> str:
    params = {"id": facts.neighbour.agent_id}
    if not facts.neighbour.agent_id:
        raise TargetMissing("no victim agent")
    return worst(
        [
            _rpc("agent.terminate", params),
            _rpc("agent.send", {**params, "text": "x"}),
            _rpc("agent.recv", params),
            _rpc("agent.status", params),
        ]
    )


@SUITE.case(
    "other-things",
    "reads beads, objects and entries that are not its own",
    _FOREIGN,
    tests=(
        f"{_TESTS}::test_beads_of_its_own",
        f"{_TESTS}::test_pods_below_its_own_container",
        f"{_TESTS}::test_memory_in_its_own_namespace",
    ),
)
def _other_things(_facts: TargetInfo) -> str:
    return worst(
        [
            _rpc("bead.show", {"id": _NOWHERE}),
            _rpc("bead.close", {"id": _NOWHERE, "outcome": "done"}),
            _rpc("pod.read", {"path": f"../{_NOWHERE}/x"}),
            _rpc("pod.read", {"path": f"state/{_NOWHERE}/x"}),
            _rpc("memory.retrieve", {"key": "x", "ns": f"state.{_NOWHERE}"}),
            _rpc("memory.search", {"query": "x", "namespaces": [f"state.{_NOWHERE}"]}),
        ]
    )


@SUITE.case(
    "events-of-the-box",
    "appends events that look like the box's own",
    {_FAILED: "API", _PARAMS: "agent-api"},
    tests=(f"{_TESTS}::test_an_event_of_an_agent_does_not_look_like_one_of_the_box",),
    since=2,
)
def _events_of_the_box(_facts: TargetInfo) -> str:
    kinds = (
        "box.ready",
        "box",
        "box-ready",
        "boot.sealed",
        "readiness.changed",
        "agent.exited",
        "agentbox.policy.denied",
    )
    return worst(
        [
            *(_rpc("event.append", {"type": kind}) for kind in kinds),
            _rpc("event.append", {"type": "x", "source": "urn:agentbox:box:agentbox"}),
            _rpc("event.append", {"type": "x", "agent_id": _NOWHERE}),
        ]
    )


@SUITE.case(
    "names-that-are-paths",
    "passes an id that would be another route of the API",
    _FOREIGN,
    tests=(f"{_TESTS}::test_pods_below_its_own_container",),
)
def _names_that_are_paths(_facts: TargetInfo) -> str:
    ids = (
        "..",
        "../agents",
        "..%2fagents",
        "x/../../agents",
        "x?admin=1",
        "x#",
        "%00",
        "x\r\nAuthorization: Bearer y",
        ".",
        "",
    )
    return worst(
        _rpc(method, {"id": name}) for method in ("bead.show", "agent.status") for name in ids
    )


@SUITE.case(
    "in-anothers-name",
    "claims to call on behalf of another agent",
    {"its own name": "agent-api"},
    tests=(f"{_TESTS}::test_only_the_gateway_calls_for_an_agent",),
)
def _in_anothers_name(facts: TargetInfo) -> str:
    require_agent_api()
    name = f"{facts.neighbour.agent_id or _NOWHERE} {facts.neighbour.state or _NOWHERE}"
    answer = send_rpc(rpc_message("hello"), f"Agentbox-On-Behalf-Of: {name}\r\n")
    agent = answer.get("result", {}).get("agent", {}).get("id", "no answer")
    return (
        PASSED if agent == facts.neighbour.agent_id else "its own name" if "-" in agent else agent
    )


@SUITE.case(
    "heavy-messages",
    "sends messages that are deep, long, many or not valid JSON",
    {"answered": "agent-api"},
    tests=(
        f"{_MESSAGES}::test_malformed_messages_get_errors_of_json_rpc",
        f"{_MESSAGES}::test_a_message_has_its_most",
    ),
)
def _heavy_messages(_facts: TargetInfo) -> str:
    """Passes if the agent API no longer answers in time."""
    require_agent_api()
    hello = rpc_message("hello")
    heavy = (
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"[" + b",".join([hello] * 5_000) + b"]",
        b"1" * 1_000_000,
        b"\xff\xfe",
        b'"\\ud800"',
        b'{"jsonrpc":"2.0","method":"hello","id":1e400}',
        b" " * (8 << 20),
    )
    for body in heavy:
        post("/rpc", body)
    exchange(b"\r\n" * (4 << 20) + b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return "answered" if "result" in send_rpc(hello) else f"{PASSED}: no answer any more"


@SUITE.case(
    "fills-the-journal",
    "appends to the journal without limit",
    {_FAILED: "API"},
    tests=(
        "tests/unit/api/test_agent_rates.py::test_a_flood_is_told_when_to_go_on",
        "tests/api/test_shares.py::test_a_journal_that_agents_filled_is_the_boxs_still",
    ),
    since=2,
)
def _fills_the_journal(_facts: TargetInfo) -> str:
    """Writes a quarter more than the burst limit."""
    require_agent_api()
    body = rpc_message("event.append", {"type": "x.flood", "data": {"x": "y" * _EVENT}})
    for _ in range((_AT_ONCE + _AT_ONCE // 4) // _EVENT):
        answer = send_rpc(body)
        if "result" not in answer:
            return str(answer.get("error", {}).get("code", "no answer"))
    return PASSED


def _rpc(method: str, params: dict[str, Any]) -> str:
    """The error code; `passed` for a result. Raises TargetMissing if there is no agent API."""
    require_agent_api()
    answer = send_rpc(rpc_message(method, params))
    return PASSED if "result" in answer else str(answer.get("error", {}).get("code", "no answer"))
