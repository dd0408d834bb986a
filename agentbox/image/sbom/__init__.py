"""The bill of materials: what the lock says is in the image, in CycloneDX. Runs inside derivations."""
