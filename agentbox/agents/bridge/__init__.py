"""The peer shipped for orchestrator external-stdio: agent-host's methods on standard input and
output, served locally or forwarded."""
