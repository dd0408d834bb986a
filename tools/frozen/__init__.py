"""What others read of agentbox, found in the running code. `tools/freeze.py` writes it down.

`sources` alone imports agentbox: it says where a kind of fact lives. The other files know how to
read it, and no module of agentbox by name.
"""
