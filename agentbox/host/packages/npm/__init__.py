"""npm packages: resolution and tarballs, no script run. Only npm formats go in."""
