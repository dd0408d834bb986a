"""Commands for the manifest, the lock file and the image. One file per command."""
