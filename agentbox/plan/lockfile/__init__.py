"""`agentbox.lock` as data: model, reader, canonical writer, digest of the inputs. How packages are
resolved is the host's.
"""
