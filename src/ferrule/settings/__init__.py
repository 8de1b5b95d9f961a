"""Settings files: which file is one, what may stand in it, and whether a change keeps it valid."""
