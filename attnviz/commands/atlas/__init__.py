"""`attnviz atlas`."""
