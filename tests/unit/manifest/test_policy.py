"""Policies: the last rule that matches decides, and a policy that is not beyond another allows nothing that it refuses."""

import itertools
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pattern_samples import PATTERNS, VALUES

from agentbox.manifest.tables.policies import FsRule, NetRule
from agentbox.manifest.tables.policies import PolicyTable as Written
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.scopes import OPERATIONS, SCOPES, Scope
from agentbox.policy.policy import Policy, build_policy
from agentbox.policy.profiles import PolicyChainError, chain, effective_policy, profiles

METHODS = st.lists(st.sampled_from(["GET", "POST"]), max_size=1).map(tuple)
PATHS = st.lists(st.sampled_from(["/a", "/a/*", "/*"]), max_size=1).map(tuple)


@dataclass(frozen=True)
class Rule:
    mode: Literal["allow", "deny"]
    operations: tuple[str, ...]
    patterns: tuple[str, ...]
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def written(scope: Scope) -> st.SearchStrategy[list[Rule]]:
    """A few rules of a scope; those of net may be limited to some requests. Direct ports have their own form."""
    operations = [name for name in OPERATIONS[scope] if name != "tcp"]
    limits = {"methods": METHODS, "paths": PATHS} if scope == "net" else {}
    rule = st.builds(
        Rule,
        mode=st.sampled_from(["allow", "allow", "deny"]),
        operations=st.lists(st.sampled_from(operations), min_size=1, unique=True).map(tuple),
        patterns=st.lists(PATTERNS[scope], min_size=1, max_size=2).map(tuple),
        **limits,
    )
    return st.lists(rule, max_size=4)


def policy(scope: Scope, rules: list[Rule]) -> Policy:
    return build_policy("p", {scope: rules})


@pytest.mark.parametrize("scope", SCOPES)
def test_not_beyond_means_nothing_more(scope: Scope) -> None:
    """Whatever the narrower one allows the wider one allows, with denials on either side."""
    requests = st.tuples(
        VALUES[scope],
        st.sampled_from(["", "GET", "POST"]),
        st.sampled_from(["", "/a", "/a/b", "/b"]),
    )

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(written(scope), written(scope), st.lists(requests, min_size=1, max_size=8))
    def check(narrow: list[Rule], wide: list[Rule], asked: list[tuple[str, str, str]]) -> None:
        child, parent = policy(scope, narrow), policy(scope, wide)
        for operation in OPERATIONS[scope]:
            for value, method, path in asked:
                allowed = child.decide(scope, operation, value, method=method, path=path)
                if allowed and not parent.decide(scope, operation, value, method=method, path=path):
                    assert child.permissions_beyond(parent)
        assert not child.permissions_beyond(child) or any(rule.mode == "deny" for rule in narrow)

    check()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(written("fs"), VALUES["fs"])
def test_what_is_allowed_is_granted(rules: list[Rule], value: str) -> None:
    """`grants` omits nothing."""
    made = policy("fs", rules)
    if made.decide("fs", "read", value):
        assert any(
            grant.operation == "read" and grant.pattern.matches(value) for grant in made.permissions
        )


def test_the_last_rule_decides() -> None:
    """And without one nothing is allowed."""
    made = build_policy(
        "p",
        {
            "fs": (
                FsRule(mode="allow", patterns=("/data/**",)),
                FsRule(mode="deny", patterns=("/data/x/**",), operations=("write",)),
            )
        },
    )
    assert made.decide("fs", "write", "/data/y")
    assert made.decide("fs", "read", "/data/x/1")
    assert not made.decide("fs", "write", "/data/x/1")
    assert not made.decide("fs", "read", "/etc/passwd")
    assert not made.decide("net", "connect", "x.org:443")


def test_rules_about_plain_http() -> None:
    """Methods and paths limit a rule to such requests; a tunnel shows neither. A path with two readings is refused."""
    rule = NetRule(mode="allow", patterns=("x.org:80",), methods=("GET",), paths=("/v1/*",))
    made = build_policy("p", {"net": (rule,)})

    def asked(method: str, path: str) -> bool:
        return made.decide("net", "connect", "x.org:80", method=method, path=path)

    assert asked("GET", "/v1/a/b")
    assert not asked("POST", "/v1/a")
    assert not asked("GET", "/v2/a")
    assert not asked("", "")
    for path in ("/v1/../v2", "/v1//x", "/v1/%2e%2e/x", "/v1/a%2Fb", "/v1/\\x", "v1/a"):
        assert not asked("GET", path)
    for path in ("/v1/..;/v2", "/v1/..;x=1/v2", "/v1/..;", "/v1/%252e%252e/x", "/v1/a%25252fb"):
        assert not asked("GET", path)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/%u002e%u002e/x", "/v1/%U002E%u002e", "/v1/a%u2215b", "/v1/%25u002e",  # IIS
        "/v1/%c0%ae%c0%ae/x", "/v1/%C0%AF", "/v1/%e0%80%ae", "/v1/%f0%80%80%af", "/v1/%c1%9c", "/v1/%25c0%25ae",  # overlong
        "/v1/%ef%bc%8f..", "/v1/%ef%bc%8e%ef%bc%8e/x", "/v1/%e2%80%a5/x", "/v1/%ef%bc%bcx",  # by NFKC
        "/v1/%", "/v1/%2", "/v1/%g0", "/v1/%ff", "/v1/%ed%a0%80", "/v1/%0d%0aX:%20y", "/v1/%09../x", "/v1/%7f", "/v1/%2500",
    ],
)  # fmt: skip
def test_an_escape_with_two_readings_is_refused(path: str) -> None:
    """Forms that some servers decode to a dot, a slash or nothing, and others do not."""
    made = build_policy(
        "p", {"net": (NetRule(mode="allow", patterns=("x.org:80",), paths=("/v1/*",)),)}
    )
    assert not made.decide("net", "connect", "x.org:80", method="GET", path=path)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/gr%C3%BC%C3%9Fe",
        "/v1/%e4%bd%a0",
        "/v1/100%25",
        "/v1/a%20b",
        "/v1/%3Fx%26y%3D1",
        "/v1/a.b..c",
    ],
)
def test_an_escape_with_one_reading_passes(path: str) -> None:
    """UTF-8 of other scripts, and signs that belong escaped."""
    made = build_policy(
        "p", {"net": (NetRule(mode="allow", patterns=("x.org:80",), paths=("/v1/*",)),)}
    )
    assert made.decide("net", "connect", "x.org:80", method="GET", path=path)


def test_an_escape_hides_nothing_from_a_rule_about_paths() -> None:
    """Servers read `%61` as `a`: so does a rule that denies, and one that allows."""
    deny = NetRule(mode="deny", patterns=("x.org:80",), paths=("/admin*", "/~root*"))
    made = build_policy("p", {"net": (NetRule(mode="allow", patterns=("x.org:80",)), deny)})

    def asked(path: str) -> bool:
        return made.decide("net", "connect", "x.org:80", method="GET", path=path)

    assert asked("/pool/libstdc%2b%2b6_1%7edeb")
    for path in ("/admin", "/%61dmin", "/%61%64%6D%69%6e/x", "/%7Eroot", "/%7eroot/x"):
        assert not asked(path), path


def test_variables_are_filled_in() -> None:
    """A list of values, or none: then the rule is removed. Others stay unchanged."""
    standard = profiles()["standard"]
    bound = standard.with_bindings(
        {
            "$EGRESS": ["x.org", "*.x.org"],
            "$CHILDREN": [],
            "$WORKSPACE": ["/work"],
            "$PROVIDER": ["a"],
        }
    )
    assert bound.decide("net", "connect", "y.x.org:443")
    assert bound.decide("fs", "write", "/work/src/a.py")
    assert not bound.decide("fs", "write", "/workspace/a.py")
    assert bound.decide("fs", "write", "$TMP/a")
    assert bound.decide("llm", "call", "a/model-1")
    assert not bound.decide("agent", "spawn", "reviewer")
    assert not bound.decide("agent", "spawn", "$CHILDREN")
    with pytest.raises(PatternError):
        standard.with_bindings({"$EGRESS": ["https://x.org"]})


def test_the_profiles_of_the_specification() -> None:
    """Each is within the next, and only the widest reaches the network by itself."""
    order = ["minimal", "readonly", "sandboxed", "standard", "unrestricted"]
    assert sorted(profiles()) == sorted([*order, "service"])
    for narrow, wide in itertools.pairwise(order):
        assert not profiles()[narrow].permissions_beyond(profiles()[wide])
        assert profiles()[wide].permissions_beyond(profiles()[narrow])
    assert [profiles()[name].decide("fs", "write", "$WORKSPACE/a") for name in order] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert [profiles()[name].decide("net", "connect", "x.org:22") for name in order] == [
        False
    ] * 4 + [True]
    assert all(profiles()[name].decide("env", "read", "PATH") for name in order)


def test_what_serves_agents_has_nothing_of_theirs() -> None:
    """The profile `service` is its own folder and the toolchain."""
    scopes = {str(permission.scope) for permission in profiles()["service"].permissions}
    assert scopes == {"fs", "exec", "env"}
    assert not profiles()["service"].decide("fs", "read", "$WORKSPACE/a")
    assert not profiles()["service"].permissions_beyond(profiles()["sandboxed"])


@pytest.mark.parametrize("name", ["sandboxed", "standard", "unrestricted"])
def test_every_tool_is_every_tool_of_the_box(name: str) -> None:
    """Those of MCP servers are allowed as far as the agent is offered the server."""
    bound = profiles()[name].with_bindings({"$MCP": ["mcp/files/*"]})
    assert bound.decide("tool", "call", "bead/claim")
    assert bound.decide("tool", "call", "mcp/files/read")
    assert not bound.decide("tool", "call", "mcp/other/read")


@pytest.mark.parametrize(
    "path",
    ["/run/agentbox/supervisor.sock", "/run/secrets/X", "/var/lib/agentbox/boot", "/proc/1/mem"],
)
def test_no_profile_shows_the_control_plane(path: str) -> None:
    """Not even unrestricted."""
    for profile in profiles().values():
        assert not profile.decide("fs", "read", path)
        assert not profile.decide("exec", "run", path)


def test_a_policy_stands_on_its_base() -> None:
    """The chain ends at a built-in profile; the rules of each step follow those of its base."""
    policies = {
        "base": Written(base="standard", net=(NetRule(mode="deny", patterns=("a.x.org",)),)),
        "own": Written(base="base", net=(NetRule(mode="allow", patterns=("*.x.org",)),)),
    }
    assert chain("own", policies) == ("standard", "base", "own")
    assert chain("minimal", policies) == ("minimal",)
    assert not effective_policy("base", policies).decide("net", "connect", "a.x.org:443")
    assert effective_policy("own", policies).decide("net", "connect", "a.x.org:443")
    assert [rule.origin for rule in effective_policy("own", policies).rules["net"]] == [
        "standard",
        "base",
        "own",
    ]


def test_chains_that_reach_nothing() -> None:
    """An unknown name, and a cycle."""
    ring = {
        "a": Written(base="b"),
        "b": Written(base="a"),
        "c": Written(base="c"),
        "d": Written(base="gone"),
    }
    for name, at, is_ring in (
        ("a", "a", True),
        ("c", "c", True),
        ("d", "gone", False),
        ("x", "x", False),
    ):
        with pytest.raises(PolicyChainError) as caught:
            chain(name, ring)
        assert (caught.value.name, caught.value.is_cycle) == (at, is_ring)
    assert chain("sandboxed", {"sandboxed": Written(base="minimal")}) == ("sandboxed",)
