"""The five slots: the runtime around an adapter, and the implementations. Slots do not import each
other; what they share goes into `runtime` or `core`.
"""
