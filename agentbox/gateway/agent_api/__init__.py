"""The API of an agent to its box, as JSON-RPC 2.0 and as MCP. Calls are authorized here and served
by the management API."""
