"""What every image must hold: one module a check, each a function from layers to findings. Runs inside derivations."""
