"""The programs of the remote desktop: they prepare what the servers need, then execute them. One
display system a module.
"""
