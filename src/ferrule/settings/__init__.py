"""Settings files: which files are settings, what they may contain, and whether a change keeps them valid."""
