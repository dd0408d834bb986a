"""Rules about features and what they need. One file a rule, named after its code."""
