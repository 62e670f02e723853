"""A model trained on a user's own text."""
