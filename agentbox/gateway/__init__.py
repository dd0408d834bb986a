"""The only address that an agent reaches: forward proxy, model gateway and agent API, each by the
agent's own token. Only code that answers agents goes in.
"""
