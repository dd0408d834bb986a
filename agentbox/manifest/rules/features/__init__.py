"""Rules about features and their requirements. One file per rule, named after its code."""
