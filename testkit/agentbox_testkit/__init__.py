"""Contract suites of the slots, for adapters of agentbox and of third parties.

A suite subclasses a contract and says how a store is opened (docs/howto/add-an-adapter.md).
"""
