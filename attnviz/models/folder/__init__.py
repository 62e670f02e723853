"""What is read from a model's folder, checked before anything is built from it."""
