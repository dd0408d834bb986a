"""Operations and constraints that the tests of rights draw from."""

from typing import Any

from hypothesis import strategies as st

from agentbox.contracts.orchestrator import AgentSpec, Constraint

CHECKED: tuple[tuple[Any, str, str], ...] = (
    ("net", "connect", "example.com:443"), ("net", "connect", "a.pkg.example:80"), ("net", "connect", "bad.pkg.example:443"),
    ("net", "connect", "other.example:443"), ("tool", "call", "git/log"), ("tool", "call", "git/push"),
    ("tool", "call", "memory/search"), ("agent", "spawn", "eye"), ("agent", "spawn", "hand"), ("llm", "call", "x/y"),
)  # fmt: skip
KERNEL: tuple[tuple[Any, str, str], ...] = (
    ("fs", "read", "$WORKSPACE/a"), ("fs", "write", "$WORKSPACE/a"), ("fs", "read", "/srv/data/b"), ("fs", "write", "$TMP/c"),
    ("exec", "run", "$TOOLCHAIN/git"), ("exec", "run", "$WORKSPACE/a"), ("env", "read", "HOME"),
)  # fmt: skip
BOUNDS = st.lists(
    st.builds(Constraint, scope=st.sampled_from(["tool", "net"]), uses=st.none() | st.integers(0, 3), expires_s=st.none() | st.just(3600.0)),
    max_size=1,
)  # fmt: skip


def spec_of(name: str, parent_id: str | None, bounds: list[Constraint]) -> AgentSpec:
    """An agent of the manifest, as the child of another, with constraints of its own."""
    return AgentSpec(name=name, agent=name, parent_id=parent_id, constraints=tuple(bounds))
