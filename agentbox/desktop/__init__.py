"""The remote desktop's programs: they make what the servers need at start, then become them."""
