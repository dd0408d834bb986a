"""Commands for agents, tasks, reviews and approvals. One file per command."""
