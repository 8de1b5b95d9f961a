"""Plain data and contracts: no input or output, no event loop."""
