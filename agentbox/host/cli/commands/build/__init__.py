"""Verbs about the manifest, the lock file and the image. One file a verb."""
