"""Commands for data that a box stores. One file per command."""
