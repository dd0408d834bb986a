"""Random patterns of every scope, and values that they may match; small alphabets, so that sets often meet."""

from hypothesis import strategies as st

from agentbox.policy.patterns.scopes import Scope

_SEGMENTS = st.sampled_from(["a", "b", "ab", "data", "data-foo"])
_GLOBBED = st.one_of(_SEGMENTS, st.sampled_from(["*", "?", "a*", "*a", "a?", "*?", "?*", "d*a"]))
_ROOTS = st.sampled_from(["", "$WORKSPACE", "$TMP", "$TOOLCHAIN"])
_LABELS = st.sampled_from(["a", "b", "x-1"])
_PORTS = st.sampled_from(["", ":443", ":80", ":*"])


def _joined(root: str, segments: list[str], tail: str) -> str:
    return f"{root}{''.join(f'/{segment}' for segment in segments)}{tail}" or "/"


def _paths(segments: st.SearchStrategy[str], tails: list[str]) -> st.SearchStrategy[str]:
    return st.builds(_joined, _ROOTS, st.lists(segments, max_size=3), st.sampled_from(tails))


_HOSTS = st.lists(_LABELS, min_size=1, max_size=3).map(".".join)
_ADDRESSES = st.sampled_from(
    ["10.0.0.5", "10.1.2.3", "192.0.2.1", "[2001:db8::1]", "[::ffff:10.0.0.5]"]
)
_RANGES = st.sampled_from(
    ["10.0.0.0/8", "10.0.0.0/24", "0.0.0.0/0", "[2001:db8::/32]", "[::]/0", "10.0.0.5/32"]
)
_WORDS = st.sampled_from(["a", "ab", "b", "git", "a-b"])

PATTERNS: dict[Scope, st.SearchStrategy[str]] = {
    "fs": _paths(_GLOBBED, ["", "/**"]),
    "exec": st.one_of(_paths(_GLOBBED, ["", "/**"]), st.sampled_from(["git", "ls", "$COMMAND"])),
    "net": st.one_of(
        st.builds(
            lambda star, host, port: f"{star}{host}{port}",
            st.sampled_from(["", "*."]),
            _HOSTS,
            _PORTS,
        ),
        st.builds(
            lambda host, port: f"{host}{port}", st.one_of(_ADDRESSES, _RANGES, st.just("*")), _PORTS
        ),
        st.just("$EGRESS"),
    ),
    "env": st.sampled_from(["A", "AB", "A_*", "AB_*", "A_B", "A_B_*", "$ENV"]),
    "tool": st.sampled_from(["*", "a", "a/*", "a/b", "a/b/*", "git/*", "git/push"]),
    "llm": st.sampled_from(
        ["*", "$PROVIDER", "a", "ab", "a/*", "a/m-*", "a/m-?", "a/m-1", "a/*/x", "ab/m-1"]
    ),
    "agent": st.sampled_from(["*", "$CHILDREN", "a", "a-*", "a-b", "a-b-*", "b"]),
}
VALUES: dict[Scope, st.SearchStrategy[str]] = {
    "fs": _paths(_SEGMENTS, [""]),
    "exec": st.one_of(_paths(_SEGMENTS, [""]), st.sampled_from(["git", "ls", "$COMMAND"])),
    "net": st.one_of(
        st.builds(
            lambda host, port: f"{host}:{port}",
            st.one_of(_HOSTS, _ADDRESSES),
            st.sampled_from([80, 443, 9]),
        ),
        st.just("$EGRESS"),
    ),
    "env": st.sampled_from(["A", "AB", "A_", "A_B", "A_B_C", "AB_C", "$ENV"]),
    "tool": st.sampled_from(["a", "a/b", "a/b/c", "git/push", "git"]),
    "llm": st.sampled_from(["a/m-1", "a/m-12", "a/m/x", "ab/m-1", "b/m", "$PROVIDER/m"]),
    "agent": st.sampled_from(["a", "a-b", "a-b-c", "b", "$CHILDREN"]),
}
