"""A target environment whose own files can be changed without harm to the prepared one."""

from __future__ import annotations

import subprocess
from pathlib import Path

from quark_tui.demo.setup import Settings


def borrowed(target: Settings, prefix: Path) -> Path:
    """An environment at ``prefix``: its packages are links into the prepared one, amd-quark's metadata and its command
    are copies."""
    base = subprocess.run(
        [
            str(target.python),
            "-c",
            "import sys, sysconfig; print(sys._base_executable); print(sysconfig.get_path('purelib'))",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    python, packages = base.stdout.splitlines()
    subprocess.run([python, "-m", "venv", "--without-pip", str(prefix)], check=True, timeout=120)
    own = next(prefix.glob("lib/python3.*/site-packages"))
    for entry in Path(packages).iterdir():
        if entry.name.startswith("amd_quark-"):
            (own / entry.name).mkdir()
            for file in entry.iterdir():
                if file.is_file():
                    (own / entry.name / file.name).write_bytes(file.read_bytes())
        elif entry.name != "__pycache__":
            (own / entry.name).symlink_to(entry)
    text = target.quark_cli.read_text()
    command = prefix / "bin" / "quark-cli"
    command.write_text(text.replace(str(target.python), str(prefix / "bin" / "python")))
    command.chmod(0o755)
    return prefix
