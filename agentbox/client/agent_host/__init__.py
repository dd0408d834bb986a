"""Clients of agent-host over JSON-RPC: a connection, and operations derived from their tables."""
