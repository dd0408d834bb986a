"""The bill of materials in CycloneDX, from the lock file. Runs inside derivations."""
