"""Beads in a schema of PostgreSQL: tables, rows and statements. Decisions without SQL go into
`adapters/beads`.
"""
