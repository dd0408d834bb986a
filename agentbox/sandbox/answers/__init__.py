"""The calls of an agent that its reaper answers: one listener a tree, one file a kind of call."""
