"""`attnviz heads`."""
