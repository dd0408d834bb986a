"""The forward proxy: what an agent reaches of the network, name by name, and what it costs."""
