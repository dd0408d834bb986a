"""Federation: the host that keeps sessions, and the client that joins one (docs/howto/federate.md)."""
