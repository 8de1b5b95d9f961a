"""What stands on the command line is nobody's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.requirement import requirement


@requirement("HELD-21")
def test_arguments_cannot_be_read_by_another_process_and_still_work(tmp_path: Path) -> None:
    words = (
        "import sys, ferrule.cli.main as o; o.hide_arguments(); print(sys.argv[1:]); sys.stdout.flush();"
        "import subprocess as s, os; print(s.run(['cat', f'/proc/{os.getpid()}/cmdline'], capture_output=True).stdout)"
    )
    program = tmp_path / "program.py"
    program.write_text(words)

    done = subprocess.run(
        [sys.executable, str(program), "-p", "secret prompt"], capture_output=True, text=True, check=True
    )

    arguments, line = done.stdout.splitlines()
    assert arguments == "['-p', 'secret prompt']"
    assert "secret" not in line
    assert "program.py" in line
