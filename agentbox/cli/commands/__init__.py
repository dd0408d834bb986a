"""One file a verb; each holds a click command named `command`."""
