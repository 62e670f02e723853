"""`attnviz train`."""
