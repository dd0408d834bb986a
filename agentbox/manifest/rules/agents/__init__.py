"""Rules about agents and the policies that hold for them. One file a rule, named after its code."""
