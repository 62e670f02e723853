"""The built-in model's training: a little world, a loop, figures measured on held-out texts."""
