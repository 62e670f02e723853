"""How the bundled models are made; it imports attnviz, which never imports it."""
