"""The scopes of tokens."""

# `admin` includes all but `core`; `core` is for per-boot tokens only, `mesh:session` for the token
# of a mesh session, and every named token holds `token:self`: none of them can be assigned.
SCOPES: frozenset[str] = frozenset(
    f"{slot}:{verb}"
    for slot in ("beads", "pods", "memory", "events", "agents", "approvals", "backups")
    for verb in ("read", "write")
) | {"reviews:write", "mesh:join", "mesh:admin", "mesh:session", "token:self", "admin", "core"}
GRANTABLE = SCOPES - {"core", "mesh:session", "token:self"}
