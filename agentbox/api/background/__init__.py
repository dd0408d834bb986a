"""Work of the API beside its requests: journal of the boot, drift, drain, canaries. One task a
module.
"""
