"""The attacks of a hostile agent, one attack case each, run as an agent. Uses the standard library
and the protocol of the suite only.
"""
