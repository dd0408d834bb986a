"""Rules about agents and their policies. One file per rule, named after its code."""
