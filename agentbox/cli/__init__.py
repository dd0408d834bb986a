"""The command line: one file a verb under `commands`, one line a verb in `main.VERBS`."""
