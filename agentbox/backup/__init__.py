"""Repositories of snapshots: what `agentbox backup` and the program `backup` write, list, verify,
open and prune. A cut (`contracts.backups.Cut`) is staged elsewhere; here it becomes a snapshot.
"""
