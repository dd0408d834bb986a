"""The engine `restic`: snapshots are restic's, deduplicated; their heads are those of a folder."""
