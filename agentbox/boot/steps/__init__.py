"""The phases of the boot, one file each (box.md 5)."""
