"""Exit codes, and the error that means the second of them."""

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130
"""128 + SIGINT."""
CLOSED_PIPE = 141
"""128 + SIGPIPE: the reader of the output is gone."""


class Failed(Exception):
    """The command could not do its work. The message says why."""


class UsageError(Exception):
    """Wrong flags or settings. The message says what is wrong and what to write instead."""
