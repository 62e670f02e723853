"""`attnviz report`."""
