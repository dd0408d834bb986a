"""The families of requirements behind `/ready`, one file each, in the words of box.md 7."""
