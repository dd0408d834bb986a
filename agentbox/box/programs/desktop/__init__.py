"""The programs of the remote desktop: they prepare the files of the servers, then execute them. One
display system per module.
"""
