"""Runs programs written for other libraries after a change of the import."""
