"""Branches: an agent's own copy of the workspace, what it changed, and the operator's decision.
Everything that reads or applies a branch goes in.
"""
