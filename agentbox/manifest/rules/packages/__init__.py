"""Rules about packages and the lock file. One file a rule, named after its code."""
