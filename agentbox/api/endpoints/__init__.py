"""One module a resource; the functions are named in the route table."""
