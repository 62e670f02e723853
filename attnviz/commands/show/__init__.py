"""`attnviz show`."""
