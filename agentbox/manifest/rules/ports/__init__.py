"""Rules about listeners and published ports. One file a rule, named after its code."""
