"""`attnviz explore`."""
