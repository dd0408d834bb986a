"""npm packages: resolution and tarballs; no script is run. Only npm formats belong here."""
