"""Results as rows, objects and captures, and the safe way to write a file."""
