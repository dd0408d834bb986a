"""Accepting connections on the single port: protocol detection and quotas. No request is authorized
here."""
