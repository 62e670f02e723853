"""What several commands draw: sentences, labels, grids, tables; it knows no command."""
