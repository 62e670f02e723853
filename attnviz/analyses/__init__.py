"""Records to results: pure functions."""
