"""An index of the journal, for searches. It can be rebuilt from the journal at any time."""
