"""The tables of `beads.db`, as numbered migrations. Never edit a released migration: add another.

Times are milliseconds since 1970. `rank` is the sort key of `ready` after the priority: not_before,
else created_at. `lease_id` stays on a closed bead to distinguish a repeated close by the holder
from a late one. `next_due` is the next due time of a schedule without a child.
"""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE beads (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, parent_id TEXT REFERENCES beads (id), depth INTEGER NOT NULL,
        title TEXT NOT NULL, creator TEXT NOT NULL, body TEXT NOT NULL, priority INTEGER NOT NULL,
        tags TEXT NOT NULL, data TEXT NOT NULL, dedup_key TEXT UNIQUE, not_before INTEGER, every TEXT,
        overlap TEXT NOT NULL, max_attempts INTEGER NOT NULL,
        status TEXT NOT NULL, assignee TEXT, lease_id TEXT, lease_expires_at INTEGER, outcome TEXT,
        note TEXT NOT NULL, result TEXT NOT NULL, attempts INTEGER NOT NULL, revision INTEGER NOT NULL,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, closed_at INTEGER,
        rank INTEGER NOT NULL, next_due INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX beads_ready ON beads (priority, rank, id) WHERE status = 'open' AND kind = 'task';
    CREATE INDEX beads_leases ON beads (lease_expires_at) WHERE status = 'claimed';
    CREATE UNIQUE INDEX beads_lease ON beads (lease_id) WHERE status = 'claimed';
    CREATE INDEX beads_due ON beads (next_due) WHERE status = 'open' AND next_due IS NOT NULL;
    CREATE INDEX beads_parent ON beads (parent_id, id);
    CREATE INDEX beads_status ON beads (status, id);
    CREATE TABLE deps (
        bead_id TEXT NOT NULL REFERENCES beads (id), blocker_id TEXT NOT NULL REFERENCES beads (id),
        PRIMARY KEY (bead_id, blocker_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX deps_blocker ON deps (blocker_id, bead_id);
    CREATE TABLE tags (
        tag TEXT NOT NULL, bead_id TEXT NOT NULL REFERENCES beads (id), PRIMARY KEY (tag, bead_id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pulse (id INTEGER PRIMARY KEY CHECK (id = 0), at INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE INDEX beads_of_agents ON beads (creator)
        WHERE status != 'closed' AND creator >= 'urn:agentbox:agent:' AND creator < 'urn:agentbox:agent;';
    """,
)
