"""Pattern to pattern: pure functions on records."""
