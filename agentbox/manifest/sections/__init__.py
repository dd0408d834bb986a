"""One file a top-level table; same stem as its schema file and its heading in docs/manifest.md."""
