"""Completion of the command line by shells: a script with a table of verbs and flags for each."""
