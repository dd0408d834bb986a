"""How tables declare their keys, and what is read from the declarations."""
