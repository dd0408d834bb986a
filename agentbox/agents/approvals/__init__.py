"""Actions of agents that wait for a person's decision: registry, records and RPC methods."""
