"""JSON-RPC 2.0 over streams: messages, client, session, flow control. Methods of a program stay
with that program.
"""
