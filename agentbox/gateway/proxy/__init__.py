"""The forward proxy: what an agent reaches of the network, by name, and what it costs. Only HTTP
and tunnels to other machines go in.
"""
