"""Rules about redaction and its models. One file a rule, named after its code."""
