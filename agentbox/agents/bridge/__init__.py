"""The peer that orchestrator external-stdio ships with: agent-host's methods on standard input and
output. Only its command line and its two ways to answer go in.
"""
