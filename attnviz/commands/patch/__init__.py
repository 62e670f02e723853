"""`attnviz patch`."""
