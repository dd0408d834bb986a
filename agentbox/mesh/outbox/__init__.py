"""A durable queue of results that a store could not accept yet. Only the outbox and its metrics
belong here."""
