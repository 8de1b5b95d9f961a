"""User code at fixed events: programs, URLs and functions that may refuse, change or add."""
