"""`attnviz scan`."""
