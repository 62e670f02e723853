"""Models written from scratch on `attention.py`, and their native runs."""
