"""The tables of `memory.db`, as numbered migrations. Never edit a released migration: add another.

Times are milliseconds since 1970. A metadata value is in `number` or `words` depending on its kind
(`filters.kind_of`). An entry without tokens has no row in `vectors`. `words_of` is contentless: the
text is in `entries`.
"""

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, text TEXT NOT NULL,
        metadata TEXT NOT NULL, bytes INTEGER NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
        expires_at INTEGER, UNIQUE (namespace, key)
    ) STRICT;
    CREATE INDEX entries_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE metadata (
        entry INTEGER NOT NULL REFERENCES entries (id) ON DELETE CASCADE, key TEXT NOT NULL, kind TEXT NOT NULL,
        number REAL, words TEXT, PRIMARY KEY (entry, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX metadata_key ON metadata (key, kind, number, words);
    CREATE TABLE vectors (
        entry INTEGER PRIMARY KEY REFERENCES entries (id) ON DELETE CASCADE, vector BLOB NOT NULL
    ) STRICT;
    CREATE VIRTUAL TABLE words_of USING fts5 (
        text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE TABLE namespaces (name TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE model (id INTEGER PRIMARY KEY CHECK (id = 0), model_id TEXT NOT NULL, dims INTEGER NOT NULL) STRICT;
    CREATE TABLE pulse (id INTEGER PRIMARY KEY CHECK (id = 0), at INTEGER NOT NULL) STRICT;
    """,
    # The data files and packages of the model: while they are unchanged, opening need not load it.
    "ALTER TABLE model ADD COLUMN files TEXT NOT NULL DEFAULT ''",
    # The order in which vectors were written, so that a cache can read the newer ones.
    """
    ALTER TABLE vectors ADD COLUMN stamp INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX vectors_stamp ON vectors (stamp);
    CREATE TABLE stamps (id INTEGER PRIMARY KEY CHECK (id = 0), last INTEGER NOT NULL) STRICT;
    INSERT INTO stamps VALUES (0, 0);
    """,
    # The progress of rewriting all vectors with another model (memory/reembed.py).
    """
    CREATE TABLE renewal (id INTEGER PRIMARY KEY CHECK (id = 0), model_id TEXT NOT NULL, after INTEGER NOT NULL) STRICT;
    """,
    # The last written and removed entries, numbered without gaps, for processes that cache their
    # words.
    """
    CREATE TABLE changes (stamp INTEGER PRIMARY KEY, entry INTEGER NOT NULL) STRICT;
    CREATE TRIGGER entries_inserted AFTER INSERT ON entries BEGIN
        INSERT INTO changes (entry) VALUES (new.id);
        DELETE FROM changes WHERE stamp <= (SELECT max(stamp) FROM changes) - 10000;
    END;
    CREATE TRIGGER entries_deleted AFTER DELETE ON entries BEGIN
        INSERT INTO changes (entry) VALUES (old.id);
        DELETE FROM changes WHERE stamp <= (SELECT max(stamp) FROM changes) - 10000;
    END;
    """,
)
