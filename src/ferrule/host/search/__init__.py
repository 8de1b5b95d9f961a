"""Searches over files: ripgrep and globs."""
