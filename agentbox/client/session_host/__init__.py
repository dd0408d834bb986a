"""Client of session-host over JSON-RPC."""
