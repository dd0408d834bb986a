"""One module per check, each listed in `catalogue`."""
