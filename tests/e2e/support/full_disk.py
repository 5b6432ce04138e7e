"""Runs inside a mount namespace of its own: a job on a small filesystem that fills up while its command runs.

``python -m tests.e2e.support.full_disk MOUNT OUTPUT MODEL PYTHON CACHE`` prints what happened as one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.e2e.support.contracts import contracts
from tests.e2e.support.job import Job
from tests.e2e.support.twin import Twin


def fill(folder: Path) -> int:
    """Write until nothing more fits; returns the free bytes that are left."""
    with open(folder / "filler", "ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"0" * size)
            except OSError:
                continue
    info = os.statvfs(folder)
    return info.f_bavail * info.f_frsize


def main(mount: str, output: str, model: str, python: str, cache: str) -> None:
    twin = Twin(dict(os.environ), Path(output).parent)
    job = Job(twin, f"{mount}/job", Path(model), python, contracts(Path(python), Path(cache)), output=Path(output))
    job.ready(sets=("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=128", "seq_len=128"))
    job.run()
    job.calibrating()
    log = job.run_folder / "output.log"
    free, before = fill(Path(mount)), log.stat().st_size
    last = twin.end(job.path)
    fill(Path(mount))  # what the log had been given beyond its end is free again
    full = twin("verify", job.path, "--json")
    (Path(mount) / "filler").unlink()
    told = {
        "free": free,
        "grown": log.stat().st_size - before,
        "last_line": log.read_bytes().splitlines()[-1].decode(),
        "verdict": last["verdict"],
        "exit": json.loads((job.run_folder / "exit.json").read_text()),
        "leftovers": sorted(path.name for path in job.run_folder.glob(".*")),
        "verify_on_full": [full[0], full[1], full[2]],
        "verify": job.verify()["verdict"],
        "runs": job.runs(),
        "processes": job.quark_processes(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
