"""The families of requirements behind `/ready`, one file each."""
