"""Beads in a SQLite file: tables, rows and statements. Decisions without SQL go into
`adapters/beads`.
"""
