"""Whose memory and pods an agent uses: an own state, or one shared by name. The registry, the
record and the RPC methods go in.
"""
