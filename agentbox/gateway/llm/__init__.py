"""The model gateway: the providers' own HTTP under `/llm/<provider>/`, with the box's key, allowed calls, budgets, a fair queue."""
