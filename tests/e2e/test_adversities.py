"""What else happens to a run: a launcher that hears nothing, a full disk, the program removed under it, stop."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quark_tui.demo.setup import Settings
from tests.e2e.support.job import Job
from tests.e2e.support.launcher import launch
from tests.e2e.support.twin import ROOT, TIMEOUT, Twin, codes, task

LONG = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=512", "seq_len=96")
SHORT = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=8", "seq_len=32")


def _stop(job: Job) -> dict[str, Any]:
    """INT until it is heeded (one can be swallowed while a module is being imported); returns the last status."""
    while True:
        sent = job.twin.ask("stop", job.path, "--yes")
        assert (sent["sent"], sent["signal"]) == (True, "INT")
        assert job.pid in [target["pid"] for target in sent["targets"]]
        answer = job.twin.wait(
            job.path, lambda now: now["verdict"] != "running" or "stop_not_heeded" in codes(now), "heeded or not"
        )
        if answer["verdict"] != "running":
            return answer


def test_a_launcher_that_ignores_sigint_and_sighup(make_job: Callable[[Path], Job], tiny_llama: Path) -> None:
    """The child hears INT all the same; nothing is sent without --yes, and nothing harsher before an INT."""
    job = make_job(tiny_llama)
    job.ready(sets=LONG)
    launched = launch(job, deaf=True)
    try:
        job.calibrating()
        asked = job.twin.ask("stop", job.path)
        assert (asked["sent"], asked["remains"]) == (False, []) and codes(asked) == ["not_sent"]
        assert asked["targets"][0]["pid"] == job.pid and "quark-cli" in asked["targets"][0]["command"]
        for harsher in ("TERM", "KILL"):
            refused = job.twin.ask("stop", job.path, "--signal", harsher, "--yes", exit=1)
            assert (refused["sent"], codes(refused)) == (False, ["int_first"])
        assert not (job.run_folder / "stops.jsonl").exists()
        assert job.status()["verdict"] == "running"
        answer = _stop(job)
        assert (answer["liveness"], answer["verdict"]) == ("finished", "interrupted")
        end = json.loads((job.run_folder / "exit.json").read_text())
        assert end["stopped_by"] == "INT" and (end["status"] == 130 or end["signal"] == 2)
        assert task(answer, "quantize", "calibrate")["state"] == "interrupted"
        assert answer["failure"]["kind"] == "interrupted"
        over = job.twin.ask("stop", job.path, "--yes")
        assert (over["sent"], over["targets"]) == (False, [])
        assert not job.quark_processes()
    finally:
        launched.close()


def test_stopped_after_the_export(make_job: Callable[[Path], Job], smollm2: Path) -> None:
    """What was written by then is named and kept, and is not taken for a result of the run."""
    job = make_job(smollm2)
    job.ready(sets=(*SHORT, "num_calib_data=2", "evaluation_intent=smoke"))
    job.run()
    job.twin.wait(job.path, lambda now: task(now, "evaluate")["state"] == "active", "it evaluates")
    answer = _stop(job)
    assert answer["verdict"] == "interrupted"
    assert "partial_output" in codes(answer)
    named = {file["path"] for file in job.twin.ask("stop", job.path)["remains"]}
    assert named == {str(path) for path in job.output.rglob("*") if path.is_file()}
    assert str(job.output / "model.safetensors") in named
    verified = job.verify(exit=1)
    assert (verified["verdict"], _ok(verified, "metric_present")) == ("partial", False)
    assert job.status(exit=1)["verdict"] == "interrupted", "verify says what is there, not how the run ended"


def _ok(verified: dict[str, Any], code: str) -> bool | None:
    return next(check["ok"] for check in verified["checks"] if check["code"] == code)


def test_a_full_disk_under_the_log(
    tmp_path: Path, tiny_llama: Path, target: Settings, quark_env: dict[str, str]
) -> None:
    """The run folder's filesystem has no byte left in the middle of the run: the log and the end are whole."""
    mount, output = tmp_path / "small", tmp_path / "out"
    mount.mkdir()
    script = 'mount -t tmpfs -o size=40m none "$1" && shift && exec "$@"'
    program = [sys.executable, "-m", "tests.e2e.support.full_disk"]
    arguments = [str(mount), str(output), str(tiny_llama), str(target.python), str(target.cache)]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(mount), *program, *arguments],
        env={**quark_env, "QUARK_TUI_STATE": str(tmp_path / "state"), "QUARK_TUI_CONFIG": str(tmp_path / "config")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert told["free"] == 0
    assert told["grown"] > 0 and "Successfully exported model" in told["last_line"]
    assert (told["exit"]["status"], told["exit"]["recorded_by"]) == (0, "supervisor")
    assert told["exit"]["peak_memory_bytes"] > 100 << 20
    assert (told["verdict"], told["verify"], told["leftovers"]) == ("succeeded", "verified", [])
    status, answer, errors = told["verify_on_full"]
    assert (status, answer["verdict"], errors) == (0, "verified", "")
    assert "manifest_not_written" in codes(answer), "that its record could not be kept is said"
    assert (len(told["runs"]), told["processes"]) == (1, [])


def test_the_program_is_removed_during_a_run(
    make_job: Callable[[Path], Job], tiny_llama: Path, tmp_path: Path, twin: Twin
) -> None:
    """site-packages/quark_tui can go while the command runs; its end is recorded all the same."""
    program = _installed(tmp_path / "environment")
    job = make_job(tiny_llama)
    own = job.twin
    job.twin = Twin(own.env, own.cwd, (str(program),))
    job.ready(sets=SHORT)
    job.run()
    package = next((tmp_path / "environment").glob("lib/python3.*/site-packages/quark_tui"))
    shutil.rmtree(package)
    assert subprocess.run([str(program), "paths"], env=own.env, capture_output=True).returncode != 0
    job.twin = own
    answer = own.end(job.path)
    assert answer["verdict"] == "succeeded"
    end = json.loads((job.run_folder / "exit.json").read_text())
    assert (end["status"], end["recorded_by"]) == (0, "supervisor")
    assert job.verify()["verdict"] == "verified"


def _installed(prefix: Path) -> Path:
    """The console script of a fresh environment with this checkout's wheel; what it depends on stays where it is."""
    wheels = prefix.with_name("wheels")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(wheels), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=TIMEOUT)
    venv.create(prefix, with_pip=False, symlinks=True)
    python = prefix / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install"]
    wheel = str(next(wheels.glob("*.whl")))
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True, capture_output=True, timeout=TIMEOUT)
    packages = next(prefix.glob("lib/python3.*/site-packages"))
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(dependencies) + "\n")
    return prefix / "bin" / "quark-tui"
