"""What agent-host offers beside the orchestrator slot: its Protocol, its records, and how its
operations and those of the slot are called over JSON-RPC.
"""
