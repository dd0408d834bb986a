"""Rules about backups and the network. One file per rule, named after its code."""
