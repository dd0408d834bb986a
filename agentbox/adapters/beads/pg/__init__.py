"""Beads in a schema of a PostgreSQL server that many boxes may share."""
