"""A running agent: start, output, limits, restart, exit. Its stored state is in `registry`."""
