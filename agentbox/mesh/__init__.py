"""Federation: the host that manages sessions, and the client that joins one. Code of both sides
belongs here."""
