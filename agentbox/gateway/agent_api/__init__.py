"""What an agent may ask of its box, as JSON-RPC 2.0 and as MCP. Calls are judged here and answered
by the management API.
"""
