"""Commands for the box as a whole. One file per command."""
