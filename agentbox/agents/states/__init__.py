"""States: whose memory and pods an agent uses. A run has its own; runs share one by its name."""
