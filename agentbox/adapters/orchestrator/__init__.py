"""The orchestrator slot: agent processes, run by agent-host or by a peer on pipes. Only the
connection to who runs them goes in.
"""
