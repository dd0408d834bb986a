"""The model gateway: a proxy for the providers' HTTP APIs that adds the box's key and enforces
allowed calls and budgets. Vendor specifics belong in `vendors`."""
