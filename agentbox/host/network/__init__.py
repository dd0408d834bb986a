"""How this host reaches others: whom it trusts, through which proxy, and why it did not work."""
