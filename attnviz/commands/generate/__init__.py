"""`attnviz generate`."""
