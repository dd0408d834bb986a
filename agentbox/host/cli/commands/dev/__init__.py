"""Commands for the development of agentbox. One file per command."""
