"""The composition root: where everything is put together."""
