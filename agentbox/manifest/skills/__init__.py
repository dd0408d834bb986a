"""Agent Skills (agentskills.io/specification): the corpus, its digests, and the validator."""
