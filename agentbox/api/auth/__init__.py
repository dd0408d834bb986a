"""Who calls and what they may do: tokens, scopes, rates, bindings, ownership. Decisions about
callers only.
"""
