"""Every agent that this host knows: table, store, listing, denials, reconciliation at start. No
process is started here.
"""
