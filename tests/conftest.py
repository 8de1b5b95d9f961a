from __future__ import annotations

import os
import sys

from hypothesis import settings

# Many tests start a Python process. Where nothing compiled is kept, each compiles everything again: seconds a test.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("steady", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
