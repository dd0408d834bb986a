"""The phases of the boot, one file each."""
