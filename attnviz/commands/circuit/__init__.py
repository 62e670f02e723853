"""`attnviz circuit`."""
