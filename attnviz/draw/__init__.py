"""Drawing shared by several commands: sentences, labels, grids and tables."""
