"""The outside world, one adapter per file."""
