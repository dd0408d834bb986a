"""Rules about listeners and published ports. One file per rule, named after its code."""
