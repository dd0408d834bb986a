"""JSON-RPC 2.0 over streams: messages, client, session, flow control. Methods belong to the program
that serves them.
"""
