"""The machine: knows contracts, knows no tool and no policy."""

import logging

logging.getLogger("ferrule").addHandler(logging.NullHandler())
