"""Links, how transfers share them, and what collectives put on them."""
