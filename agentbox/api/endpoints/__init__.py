"""The handlers of requests, one module per resource. They translate and delegate, and hold no
state.
"""
