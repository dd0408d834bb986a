"""The wire protocols of the model vendors, one module each. They translate; rights and budgets are
decided elsewhere."""
