"""Branches: an agent's copy of the workspace, its changes, and the operator's decision."""
