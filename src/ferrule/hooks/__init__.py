"""Other people's code at fixed moments: programs, addresses and functions that may refuse, change or add."""
