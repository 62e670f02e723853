"""A little world of short English texts in which predicting the next word requires attention."""
