"""Beads in a SQLite file: tables, rows and statements. Decisions without SQL belong in
`adapters/beads`."""
