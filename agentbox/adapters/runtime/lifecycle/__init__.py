"""The lifecycle of a slot: opening, monitoring, replacing and closing its instance."""
