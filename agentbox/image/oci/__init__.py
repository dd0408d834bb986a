"""Packs listed folders into layers and layers into an archive. Runs inside derivations."""
