"""The peer that orchestrator external-stdio ships with: the methods of agent-host, one line each way on stdin and stdout."""
