"""What agentbox makes on this host, noted before it is made, and how it is removed again."""
