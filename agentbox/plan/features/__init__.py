"""What enabled features add to a plan."""
