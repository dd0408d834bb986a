"""Every limit of an agent and of its host, in one registry, and what is seen of each."""
