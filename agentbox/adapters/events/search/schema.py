"""The tables of `search.db`, as numbered migrations. A file of another schema is made anew.

`at` is in milliseconds since 1970; as in the journal it never falls while `seq` rises. `words` is
contentless: records are read from the journal. `position` has the last indexed record and its hash,
which tells whether it is of this journal.
"""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL, agent_id TEXT,
        session_id TEXT, trace_id TEXT
    ) STRICT;
    CREATE INDEX events_at ON events (at, seq);
    CREATE INDEX events_type ON events (type, seq);
    CREATE INDEX events_agent ON events (agent_id, seq) WHERE agent_id IS NOT NULL;
    CREATE INDEX events_session ON events (session_id, seq) WHERE session_id IS NOT NULL;
    CREATE INDEX events_trace ON events (trace_id, seq) WHERE trace_id IS NOT NULL;
    CREATE VIRTUAL TABLE words USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TABLE position (
        id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL, hash TEXT NOT NULL
    ) STRICT;
    """,
)
