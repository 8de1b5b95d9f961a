"""Events and views as text. Knows the data, not who made it."""
