"""Models: torch and transformers live here (and in `commands/train/`) and nowhere else."""
