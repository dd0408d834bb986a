"""What the operator's machine does for backups: recipients in the manifest, identities, folders."""
