"""The orchestrator slot: agent processes, run by agent-host or by a bridge on pipes. This package
contains only the connections."""
