"""Models: torch and transformers live here (and in training) and nowhere else."""
