"""Pages for the operator's browser, as static files. No build step, and no external resources."""
