"""`agentbox restore` on the host: where a snapshot is, and the steps from it to a running box."""
