"""Skills: found by name and description, read when they are used."""
