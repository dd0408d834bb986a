"""Actions of agents that wait for a decision of a person. The registry, the records and the RPC
methods go in.
"""
