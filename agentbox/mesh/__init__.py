"""Federation: the host that keeps sessions, and the client that joins one. What both sides need
stands here.
"""
