"""One file a check; each yields at least one result. A new file is a line in `catalogue`."""
