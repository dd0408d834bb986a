"""Memory in a schema of a PostgreSQL server with pgvector that many boxes may share."""
