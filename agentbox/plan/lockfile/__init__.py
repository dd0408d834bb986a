"""`agentbox.lock` as data: model, reader, canonical writer, digest of the inputs. Resolution of
packages is in `host`.
"""
