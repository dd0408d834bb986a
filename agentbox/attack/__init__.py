"""What a hostile agent would try, one small attack a line. Runs as an agent, with the standard library alone; each line
knows what must stop it, and tells what it got.
"""
