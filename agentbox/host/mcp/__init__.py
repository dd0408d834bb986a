"""`agentbox mcp`: a server of the Model Context Protocol on this host, for desktop clients that use
a box. It is a client of the management API with a token of its own; nothing else imports it, since
the SDK is installed on its first use.
"""
