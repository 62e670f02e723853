"""A chat to the prompt that its model reads, by the model's own template."""
