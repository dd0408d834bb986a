"""The metrics of `/metrics` and their text format. One source of metrics per module."""
