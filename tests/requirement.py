"""The mark that ties a test to what it shows: `@requirement("SCHED-1")`."""

from __future__ import annotations

import pytest

requirement = pytest.mark.requirement
