"""Packs listed directories into layers and layers into an archive. Runs inside derivations."""
