"""What breaks if this is wrong: a person cannot do the whole work with the keys that the screen shows, or what she does
there is not what is on disk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from quark_tui.demo.opening import NAME, SAMPLES
from quark_tui.demo.setup import Settings
from quark_tui.io.checkpoint import read_checkpoint
from tests.e2e.support.by_keys import (
    TERMINAL,
    Person,
    accept,
    approve,
    ask_to_run,
    at_terminal,
    calibrating,
    confirm_both,
    digest_shown,
    leave,
    own_cache,
    read_and_run,
)
from tests.e2e.support.job import Job, folder_contents
from tests.e2e.support.twin import ROOT, Twin, codes

#: Some ten seconds of calibration on one thread.
LONG = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=512", "seq_len=96")


def test_from_the_demo_job_to_an_accepted_result_by_keys_alone(target: Settings, tmp_path: Path) -> None:
    """P-04, P-91: each checkpoint is a screen that waits; every key that is pressed stands in a key line."""
    apart = ("QUARK_TUI_", "PYTHONPATH", "VIRTUAL_ENV", "PWD")
    env = {name: value for name, value in os.environ.items() if not name.startswith(apart)} | {
        "QUARK_TUI_CACHE": str(own_cache(target.cache, tmp_path / "cache")),
        "QUARK_TUI_STATE": str(tmp_path / "state"),
        "QUARK_TUI_CONFIG": str(tmp_path / "config"),
        # The cores are shared with another test.
        "OMP_NUM_THREADS": "1",
    }
    job = tmp_path / "cache" / "demo" / NAME
    runs = job / ".quark-tui" / "runs"
    with at_terminal(env, ROOT, argv=[sys.executable, "-m", "quark_tui.demo", "open"]) as person:
        confirm_both(person)
        digest = digest_shown(person)
        ask_to_run(person)
        person.terminal.press("r")
        person.sees_in_box("have not been on the screen yet")
        assert not (job / "out").exists() and not list(runs.iterdir()), "nothing before the approval"
        assert _record(job)["used_digests"] == []
        read_and_run(person)
        person.sees_step("Run", "pid ", "s stop…")
        calibrating(person, SAMPLES)
        assert "result" not in person.offered(), "no result before the end"
        person.sees("✓ succeeded · exit status 0", "tasks  10 of 11 done", seconds=900)
        shown = accept(person)
        told = leave(person)
        assert [word for _, word in person.walked] == [
            "confirm the analysis", "confirm the plan", "approve…", "Run it", "result", "accept", "Accept it", "quit",
        ]  # fmt: skip
    assert str(job) in told and "runs go on" in told
    _accepted_on_disk(job, digest, shown)
    weights = {name: t.dtype for s in read_checkpoint(job / "out").shards for name, t in s.tensors.items()}
    assert list(weights.values()).count("F8_E4M3") == 210
    assert not any(name.startswith("lm_head") and dtype.startswith("F8") for name, dtype in weights.items())


def _accepted_on_disk(job: Path, digest: str, shown: str) -> None:
    record = _record(job)
    assert {name: one["via"] for name, one in record["confirmations"].items()} == {
        "analysis": "screen",
        "plan": "screen",
    }
    assert record["used_digests"] == [digest]
    assert record["accepted"]["via"] == "screen" and record["accepted"]["digest"].startswith(shown)
    (run,) = (job / ".quark-tui" / "runs").iterdir()
    started = json.loads((run / "run.json").read_text())
    assert (started["approval"]["digest"], started["approval"]["via"]) == (digest, "screen")
    end = json.loads((run / "exit.json").read_text())
    assert (end["status"], end["signal"], end["stopped_by"]) == (0, None, None)
    manifest = yaml.safe_load((job / "run_manifest.yaml").read_text())
    assert manifest["outputs"]["status"] == "succeeded"
    assert [(one["id"], one["passed"], one["via"]) for one in manifest["checkpoints"]] == [
        (name, True, "screen") for name in ("analysis", "plan", "execution", "result")
    ]


def test_stop_sends_what_it_names_and_the_way_goes_on_from_there(
    make_job: Callable[[Path], Job], tiny_llama: Path, twin: Twin
) -> None:
    """P-95, P-98: an interrupted run is said to be one, nothing is deleted, and a follow-up goes back."""
    job = make_job(tiny_llama)
    job.new(*LONG)
    with at_terminal(twin.env, twin.cwd, job.path) as person:
        confirm_both(person)
        first = digest_shown(person)
        approve(person)
        calibrating(person, 512)
        (folder,) = (Path(job.path) / ".quark-tui" / "runs").iterdir()
        pid = json.loads((folder / "run.json").read_text())["process"]["pid"]
        person.press("stop…")
        person.sees_in_box("Send INT to this run?", str(pid), "[ Cancel ]", "nothing was sent")
        person.press("Cancel")
        person.terminal.until(lambda: "Send INT" not in person.screen, "the question is gone")
        assert job.quark_processes() == [pid] and not (folder / "stops.jsonl").exists()
        number = _stop(person)
        person.sees_step("Run", "! interrupted", seconds=120)
        log = (folder / "output.log").read_bytes()
        end = json.loads((folder / "exit.json").read_text())
        assert (end["signal"], end["stopped_by"]) == (number, {2: "INT", 15: "TERM"}[number])
        assert b"512" in log and not job.quark_processes()
        person.press("result")
        person.sees_step("Result", "interrupted")
        assert "accept" not in person.offered(), "what was interrupted cannot be accepted"
        kept = folder_contents(folder)
        person.press("follow-up")
        person.sees_in_box("▸ ◆ recommended     run the same plan again", "3 command")
        person.press("begin it")
        person.sees_step("Command", "Checkpoint 3 waits for you", "nothing was started")
        assert digest_shown(person) != first, "a second start needs an approval of its own"
        leave(person)
    # What was observed of the output goes into the run's manifest.
    assert {**folder_contents(folder), "run_manifest.yaml": None} == {**kept, "run_manifest.yaml": None}
    assert job.runs() == [folder.name]


def _stop(person: Person) -> int:
    """Stop as the screen offers it: INT, and TERM where INT is not heeded. The number of the last signal."""
    for name, number in (("INT", 2), ("TERM", 15)):
        person.press("stop…")
        person.sees_in_box(f"Send {name} to this run?")
        person.press(f"send {name}")
        person.terminal.until(
            lambda: "interrupted" in person.screen or "not heeded" in person.screen, f"{name} is heeded or not", 120
        )
        if "interrupted" in person.screen:
            return number
    raise AssertionError(f"neither INT nor TERM was heeded:\n{person.screen}")


def test_what_changed_while_the_question_was_open_is_refused(
    make_job: Callable[[Path], Job], tiny_llama: Path, twin: Twin, tmp_path: Path
) -> None:
    """P-92: another byte is another command. The difference is shown, nothing starts, the new digest waits anew."""
    model = tmp_path / "model"
    model.mkdir()
    for file in tiny_llama.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    job = make_job(model)
    job.new(*LONG)
    with at_terminal(twin.env, twin.cwd, job.path) as person:
        confirm_both(person)
        before = digest_shown(person)
        ask_to_run(person)
        changed = model / "generation_config.json"
        changed.write_text(json.dumps({**json.loads(changed.read_text()), "top_k": 7}))
        read_and_run(person)
        shown = person.sees_in_box(
            "refused: nothing was started", "the approval was not used", "generation_config.json"
        )
        assert " → " in shown, "what it was and what it is"
        assert "Run it" not in person.offered()
        assert job.runs() == [] and not job.output.exists() and _record(Path(job.path))["used_digests"] == []
        person.press("Cancel")
        person.sees_step("Command", "Checkpoint 3 waits for you")
        after = digest_shown(person)
        assert after != before
        assert twin.ask("command", job.path, env=TERMINAL)["digest"] == after
        told = twin.ask("run", job.path, "--approve", before, "--unattended", exit=1)
        assert "digest_differs" in codes(told)
        leave(person)
    assert job.runs() == [] and not job.quark_processes()


def _record(job: Path) -> dict[str, Any]:
    return dict(json.loads((job / ".quark-tui" / "job.json").read_text()))
