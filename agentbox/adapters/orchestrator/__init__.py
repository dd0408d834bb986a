"""The orchestrator slot."""
