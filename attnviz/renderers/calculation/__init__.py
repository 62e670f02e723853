"""A calculation, written out number by number."""
