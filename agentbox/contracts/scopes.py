"""The scopes of tokens."""

# `admin` includes all but `core`; `core` is for per-boot tokens only, `mesh:session` for the token
# of a mesh session, every named token holds `token:self`, and who can sign in `session:self`: none
# of them can be assigned.
SCOPES: frozenset[str] = frozenset(
    f"{slot}:{verb}"
    for slot in ("beads", "pods", "memory", "events", "agents", "approvals", "backups")
    for verb in ("read", "write")
) | {
    "reviews:write",
    "config:read",
    "audit:read",
    "users:admin",
    "mesh:join",
    "mesh:admin",
    "mesh:session",
    "token:self",
    "session:self",
    "admin",
    "core",
}
GRANTABLE = SCOPES - {"core", "mesh:session", "token:self", "session:self"}
