"""All agents of this host: registry, store, listing, denials, reconciliation at startup. Starts no
process."""
