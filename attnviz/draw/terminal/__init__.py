"""Rich renderables for a terminal."""
