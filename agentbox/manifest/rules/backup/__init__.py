"""Rules about backups. One file per rule, named after its code."""
