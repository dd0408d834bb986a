"""From a policy to the rules of the kernel."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbox.policy.policy import Policy, build_policy
from agentbox.policy.profiles import profiles
from agentbox.sandbox.compile import UnenforceableRule, compile_policy
from agentbox.sandbox.confinement import Confinement

TMP = "/var/lib/agentbox/branches/one/tmp"
BINDINGS = {
    "$WORKSPACE": ["/workspace"], "$TMP": [TMP], "$TOOLCHAIN": ["/usr", "/opt"], "$COMMAND": ["/usr/bin/tool"],
}  # fmt: skip
CLOSED = ("/var/lib/agentbox", "/run/agentbox", "/run/secrets")
OPERATIONS = {"r": ("fs", "read"), "w": ("fs", "write"), "x": ("exec", "run")}


def policy(**written: list[dict[str, Any]]) -> Policy:
    scopes = {
        scope: [SimpleNamespace(**{"mode": "allow", **table}) for table in tables]
        for scope, tables in written.items()
    }
    return build_policy("test", scopes)  # type: ignore[arg-type]


def compiled(one: Policy, bindings: Mapping[str, list[str]] = BINDINGS) -> Confinement:
    return compile_policy(one, bindings, closed=CLOSED)


def letters(confinement: Confinement, path: str) -> set[str]:
    """What the kernel would let a process do with a file at that path, by the rules of Landlock."""
    return {
        letter
        for grant in confinement.grants
        if path == grant.path or (grant.recursive and path.startswith(grant.path.rstrip("/") + "/"))
        for letter in grant.letters
    }


@pytest.mark.parametrize(
    ("profile", "path", "wanted"),
    [
        ("minimal", "/workspace/file", ""),
        ("minimal", f"{TMP}/file", "rlwm"),
        ("minimal", "/usr/bin/tool", "rx"),
        ("minimal", "/usr/bin/other", ""),
        ("minimal", "/dev/shm/x", ""),
        ("readonly", "/workspace/file", "rl"),
        ("readonly", "/usr/bin/other", "rlx"),
        ("readonly", "/dev/shm/x", ""),
        ("sandboxed", "/workspace/file", "rlwmx"),
        ("sandboxed", f"{TMP}/file", "rlwmx"),
        ("sandboxed", "/usr/bin/other", "rlx"),
        ("sandboxed", "/dev/shm/x", "rwm"),
        ("standard", "/workspace/file", "rlwmx"),
        ("sandboxed", "/dev/null", "rwd"),
        ("sandboxed", "/dev/pts/0", ""),
        ("sandboxed", "/home/else", ""),
        ("sandboxed", "/tmp/else", ""),
        ("sandboxed", "/workspace-else/file", ""),
    ],
)  # fmt: skip
def test_profiles(profile: str, path: str, wanted: str) -> None:
    """What each built-in profile becomes."""
    assert letters(compiled(profiles()[profile]), path) == set(wanted)


@pytest.mark.parametrize(
    "profile", ["minimal", "readonly", "sandboxed", "standard", "unrestricted"]
)
@pytest.mark.parametrize(
    "path",
    [
        "/var/lib/agentbox/secrets/mgmt-key", "/var/lib/agentbox/orchestrator/agents.db", "/run/agentbox/supervisor.sock",
        "/run/agentbox/agent-host.token", "/run/secrets/key", "/var/lib/agentbox/branches/two/tmp/file", "/var/log/x",
        "/var/lib/agentbox/branches/one-else",
    ],
)  # fmt: skip
def test_the_control_plane_is_closed_to_all(profile: str, path: str) -> None:
    """No profile shows its state, its sockets, its secrets or the files of another agent."""
    assert letters(compiled(profiles()[profile]), path) == set()


@pytest.mark.parametrize(
    "pattern",
    [
        "/**",
        "/var/**",
        "/var/lib/agentbox/**",
        "/var/lib/agentbox/secrets/mgmt-key",
        "/run/**",
        "/run/secrets",
    ],
)
def test_a_policy_cannot_open_the_control_plane(pattern: str) -> None:
    """Neither the directory, nor a parent, nor a file in it."""
    with pytest.raises(UnenforceableRule, match="belongs to the control plane"):
        compiled(policy(fs=[{"operations": ("read",), "patterns": (pattern,)}]))


@pytest.mark.parametrize(
    "written",
    [
        {"fs": [{"operations": ("read",), "patterns": ("/opt/*/bin",)}]},
        {"fs": [{"operations": ("read",), "patterns": ("/a/**",)}, {"mode": "deny", "operations": ("read",), "patterns": ("/a/b",)}]},
        {"net": [{"operations": ("tcp",), "patterns": ("22",)}, {"mode": "deny", "operations": ("tcp",), "patterns": ("22",)}, {"operations": ("tcp",), "patterns": ("22",)}]},
        {"net": [{"operations": ("connect",), "patterns": ("*:*",)}, {"mode": "deny", "operations": ("connect",), "patterns": ("10.0.0.0/8:*",)}]},
    ],
)  # fmt: skip
def test_what_a_list_of_what_is_allowed_cannot_say(
    written: dict[str, list[dict[str, Any]]],
) -> None:
    """A glob, and a denied part of a grant, are reported and not granted."""
    with pytest.raises(UnenforceableRule):
        compiled(policy(**written))


def test_a_deny_of_all_takes_the_grant() -> None:
    """A deny that covers the complete grant leaves nothing to enforce."""
    found = compiled(
        policy(fs=[
            {"operations": ("read",), "patterns": ("/a/b",)}, {"mode": "deny", "operations": ("read",), "patterns": ("/a/**",)},
        ])
    )  # fmt: skip
    assert letters(found, "/a/b") == set()


@pytest.mark.parametrize(
    ("net", "ports"),
    [
        ([], ()),
        ([{"operations": ("tcp",), "patterns": ("443", "22")}], (22, 443)),
        (
            [
                {
                    "operations": ("connect",),
                    "patterns": ("example.com", "10.0.0.0/8:*", "*.x.org:*", "*:443"),
                }
            ],
            (),
        ),
        ([{"operations": ("connect",), "patterns": ("*:*",)}], None),
    ],
)
def test_ports(net: list[dict[str, Any]], ports: tuple[int, ...] | None) -> None:
    """A name is for a proxy to decide and opens no port; a port opens itself; only everything opens everything."""
    assert compiled(policy(net=net)).ports == ports


def test_a_variable_without_a_value_grants_nothing() -> None:
    """No directory is invented."""
    found = compiled(profiles()["sandboxed"], {})
    assert not [grant for grant in found.grants if "$" in grant.path]
    assert letters(found, "/workspace/file") == set()


SEGMENT = st.sampled_from(["a", "b", "usr", "data", "data-foo"])
PATH = st.lists(SEGMENT, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
PATTERN = st.tuples(PATH, st.sampled_from(["", "/**"])).map("".join)
TABLE = st.fixed_dictionaries({
    "mode": st.sampled_from(["allow", "allow", "deny"]), "operations": st.sampled_from([("read",), ("write",), ("read", "write")]),
    "patterns": st.lists(PATTERN, min_size=1, max_size=3).map(tuple),
})  # fmt: skip


@given(st.lists(TABLE, max_size=4), PATH)
def test_the_kernel_is_never_told_more_than_the_policy_allows(
    tables: list[dict[str, Any]], path: str
) -> None:
    """For any policy that compiles, what Landlock would allow the evaluator allows too, and the other way round."""
    one = policy(fs=tables)
    try:
        found = compile_policy(one, {})
    except UnenforceableRule:
        return
    base = letters(compile_policy(policy(), {}), path)
    for letter in "rw":
        told = letter in letters(found, path) - base
        assert told == (one.decide(*OPERATIONS[letter], path) and letter not in base)  # type: ignore[arg-type]
