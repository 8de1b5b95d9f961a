"""git as Ferrule uses it: what a repository keeps, where, and how to run it without its programs."""
