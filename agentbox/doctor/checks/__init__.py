"""One file a check. `look` yields at least one row; a new file is a line in `catalogue.py`."""
