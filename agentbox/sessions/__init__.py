"""Sessions: agents that speak the Agent Client Protocol (ACP), each in a sandbox of its own. The
program session-host is a client of these agents, and an agent for editors; it keeps what both sides
said in a store, so that it goes on after it was killed.
"""
