"""The RPC side of agent-host: listener, service and methods. A method translates and delegates, it
decides nothing.
"""
