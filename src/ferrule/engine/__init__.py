"""The engine: it knows the contracts, but no particular tool or policy."""

import logging

logging.getLogger("ferrule").addHandler(logging.NullHandler())
