"""Beads in a PostgreSQL schema: tables, rows and statements. Decisions without SQL belong in
`adapters/beads`."""
