"""Results as rows, objects and captures, and the safe way to put bytes into a file."""
