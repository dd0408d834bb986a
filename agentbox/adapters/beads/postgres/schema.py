"""The tables, as numbered migrations. Columns are documented in
`agentbox.adapters.beads.sqlite.schema`.

`now_ms` is the only clock of the slot: milliseconds since 1970 of the server at the time of the
call, not at the start of the transaction. Ids sort by code point, independent of the collation of
the database.
"""

from agentbox.core.storage.postgres.migrations import Migration

TABLES = Migration(
    "0001_tables.sql",
    """
    CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
        'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
    CREATE TABLE beads (
        id text COLLATE "C" PRIMARY KEY, kind text NOT NULL, parent_id text COLLATE "C" REFERENCES beads (id),
        depth integer NOT NULL, title text NOT NULL, creator text NOT NULL, body text NOT NULL, priority integer NOT NULL,
        tags text NOT NULL, data text NOT NULL, dedup_key text COLLATE "C" UNIQUE, not_before bigint, every text,
        overlap text NOT NULL, max_attempts integer NOT NULL,
        status text NOT NULL, assignee text, lease_id text COLLATE "C", lease_expires_at bigint, outcome text,
        note text NOT NULL, result text NOT NULL, attempts integer NOT NULL, revision integer NOT NULL,
        created_at bigint NOT NULL, updated_at bigint NOT NULL, closed_at bigint,
        rank bigint NOT NULL, next_due bigint
    );
    CREATE INDEX beads_ready ON beads (priority, rank, id) WHERE status = 'open' AND kind = 'task';
    CREATE INDEX beads_leases ON beads (lease_expires_at) WHERE status = 'claimed';
    CREATE UNIQUE INDEX beads_lease ON beads (lease_id) WHERE status = 'claimed';
    CREATE INDEX beads_due ON beads (next_due) WHERE status = 'open' AND next_due IS NOT NULL;
    CREATE INDEX beads_parent ON beads (parent_id, id);
    CREATE INDEX beads_status ON beads (status, id);
    CREATE TABLE deps (
        bead_id text COLLATE "C" NOT NULL REFERENCES beads (id), blocker_id text COLLATE "C" NOT NULL REFERENCES beads (id),
        PRIMARY KEY (bead_id, blocker_id)
    );
    CREATE INDEX deps_blocker ON deps (blocker_id, bead_id);
    CREATE TABLE tags (
        tag text COLLATE "C" NOT NULL, bead_id text COLLATE "C" NOT NULL REFERENCES beads (id), PRIMARY KEY (tag, bead_id)
    );
    CREATE TABLE pulse (id integer PRIMARY KEY CHECK (id = 0), at bigint NOT NULL);
    """,
)
OF_AGENTS = Migration(
    "0002_of_agents.sql",
    """
    CREATE INDEX beads_of_agents ON beads (creator) WHERE status <> 'closed' AND starts_with(creator, 'urn:agentbox:agent:');
    """,
)
FEWER_INDEXES = Migration(
    "0003_fewer_indexes.sql",
    """
    ALTER TABLE beads ADD COLUMN has_blockers boolean NOT NULL DEFAULT false;
    CREATE FUNCTION blockers(bead text) RETURNS text LANGUAGE sql STABLE AS
        $$SELECT coalesce(json_agg(blocker_id ORDER BY blocker_id)::text, '[]') FROM deps WHERE bead_id = bead$$;
    CREATE FUNCTION waits(bead text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$BEGIN
        RETURN EXISTS (SELECT 1 FROM deps d JOIN beads k ON k.id = d.blocker_id
            WHERE d.bead_id = bead AND NOT (k.status = 'closed' AND k.outcome = 'done'));
    END$$;
    CREATE FUNCTION note_blockers() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
        UPDATE beads b SET has_blockers = NOT b.has_blockers WHERE b.id = coalesce(NEW.bead_id, OLD.bead_id)
            AND b.has_blockers <> EXISTS (SELECT 1 FROM deps WHERE bead_id = b.id);
        RETURN NULL;
    END$$;
    CREATE TRIGGER note_blockers AFTER INSERT OR DELETE ON deps FOR EACH ROW EXECUTE FUNCTION note_blockers();
    UPDATE beads SET has_blockers = true WHERE id IN (SELECT bead_id FROM deps);
    DROP INDEX beads_status;
    CREATE INDEX beads_unclosed ON beads (status, id) WHERE status <> 'closed';
    ALTER TABLE beads DROP CONSTRAINT beads_dedup_key_key;
    CREATE UNIQUE INDEX beads_dedup_key ON beads (dedup_key) WHERE dedup_key IS NOT NULL;
    """,
)
MIGRATIONS = (TABLES, OF_AGENTS, FEWER_INDEXES)
