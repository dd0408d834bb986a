"""Authentication and authorization of callers: tokens, scopes, rates, bindings, ownership."""
