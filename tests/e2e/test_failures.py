"""Real runs that fail: the class of failure rests on lines of the log, everything is kept, nothing is tried again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from quark_tui.io.checkpoint import read_shard
from tests.e2e.support.job import Job
from tests.e2e.support.twin import codes, task

SETS = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=8", "seq_len=32")


@dataclass(frozen=True)
class Case:
    """A way to fail: what is done to model and variables, and what has to be said about it."""

    prepare: Callable[[Path, Path], dict[str, str]]
    kinds: frozenset[str]
    words: tuple[str, ...]
    failed: str


def _no_tokenizer(model: Path, _: Path) -> dict[str, str]:
    (model / "tokenizer.json").unlink()
    return {}


def _weights_do_not_fit(model: Path, _: Path) -> dict[str, str]:
    """The header is sound, but the weights are not those of the configuration."""
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "intermediate_size": config["intermediate_size"] * 2}))
    assert not read_shard(model / "model.safetensors").problem
    return {}


def _no_data(_: Path, empty: Path) -> dict[str, str]:
    return {"HF_HOME": str(empty), "HF_HUB_OFFLINE": "1"}


CASES = {
    "no tokenizer": Case(_no_tokenizer, frozenset({"load"}), ("tokenizer",), "load"),
    "weights of another shape": Case(_weights_do_not_fit, frozenset({"load"}), ("mismatch", "size"), "load"),
    "no data without network": Case(
        _no_data,
        frozenset({"environment", "load", "configuration"}),
        ("mit-han-lab/pile-val-backup",),
        "calibration_data",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_fails(name: str, make_job: Callable[[Path], Job], tiny_llama: Path, tmp_path: Path) -> None:
    """P-95, P-107, P-108, P-109: failed, with the class, the lines that prove it, the whole error, the command, the
    versions, and the smallest change; nothing is run again."""
    case = CASES[name]
    model = tmp_path / "model"
    shutil.copytree(tiny_llama, model)
    variables = case.prepare(model, tmp_path / "empty")
    job = make_job(model)
    job.twin = replace(job.twin, changes=variables)
    job.ready(sets=SETS)
    job.run()
    answer = job.twin.end(job.path)
    assert (answer["liveness"], answer["verdict"]) == ("finished", "failed")
    assert answer["numbers"]["exit_status"]["value"] == 1
    failure: dict[str, Any] = answer["failure"]
    assert failure["kind"] in case.kinds, failure
    log = (job.run_folder / "output.log").read_text(errors="replace")
    evidence = "\n".join(failure["evidence"])
    assert any(word in evidence.lower() for word in case.words), evidence
    for line in failure["evidence"]:
        number, _, text = line.partition(": ")
        assert number.startswith("line ") or line.startswith("exit status"), line
        assert text.startswith("the phase ") or text.split("…")[0].strip() in log, line
    assert "Traceback (most recent call last)" in failure["whole_error"]
    assert log.rstrip().splitlines()[-1].strip() in failure["whole_error"], "the whole error is kept"
    assert failure["command"] == job.command_answer["commands"][0]["argv"]
    assert (failure["status"], failure["signal"]) == (1, None)
    assert failure["versions"]["amd-quark"] == "0.12.post1" and failure["versions"]["transformers"]
    assert failure["next_step"] and answer["advice"][0]["why"] == failure["next_step"]
    assert f"failure_{failure['kind']}" in codes(answer, "high")
    assert task(answer, case.failed)["state"] == "failed"
    later = [one["state"] for one in answer["tasks"][[one["key"] for one in answer["tasks"]].index(case.failed) + 1 :]]
    assert set(later) == {"skipped"}
    assert not job.output.exists() and job.runs() == [job.run_folder.name] and not job.quark_processes()
    verified = job.verify(exit=1)
    assert verified["verdict"] == "failed"
    assert job.twin.ask("accept", job.path, "--digest", verified["digest"], exit=1)["accepted_at"] is None
