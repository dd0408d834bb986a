"""Rules about packages and the lock file. One file per rule, named after its code."""
