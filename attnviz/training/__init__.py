"""Training: a little world, a loop, figures on held-out texts, and a user's own text."""
