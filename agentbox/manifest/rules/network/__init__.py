"""Rules about how others are reached."""
