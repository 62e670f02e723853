"""Results to Rich renderables."""
