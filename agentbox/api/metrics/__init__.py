"""What `/metrics` shows, and in which text. One source of metrics a module."""
