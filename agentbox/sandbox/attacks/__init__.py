"""What a hostile agent would try, one attack case each, run as an agent. The standard library and
the protocol of the suite only.
"""
