"""Rules about the five slots. One file a rule, named after its code."""
