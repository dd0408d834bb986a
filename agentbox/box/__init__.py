"""What runs in every box: boot, seal, probes, readiness, posture, supervision and the programs of
features. Nothing that only one program of the core needs goes in.
"""
