"""The program that reads the commits of a branch: the only one that runs git over an agent's
objects. It runs in a sandbox of its own, from modules that need the standard library only."""
