"""Takes commits of an agent's review into a repository on the operator's machine."""
