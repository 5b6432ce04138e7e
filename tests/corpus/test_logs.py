"""The folder, the phases and the failure classes over what quark-cli really wrote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.failure import FailureContext, classify
from quark_tui.core.ptq.phases import PHASES, PhaseReport, Phases
from quark_tui.core.ptq.tasks import PtqEvidence, PtqSpec, build
from quark_tui.core.tasks import problems

FAILURES = {
    "f_algo_awq_qwen3moe.rc1.log": ("configuration", "NotImplementedError: No built-in awq", 2),
    "f_bad_model_dir.rc1.log": ("load", "OSError: Repo id must be", 1),
    "f_bad_scheme.rc1.log": ("configuration", "ValueError: Unsupported quantization scheme: nope", 2),
    "f_corrupt_weights.rc1.log": ("load", "safetensors._safetensors_rust.SafetensorError", 1),
    "f_group_indivisible.rc1.log": ("configuration", "ValueError: The number of element", 2),
    "f_no_tokenizer.rc1.log": ("load", "ValueError: Couldn't instantiate", 1),
    "llama_fp8_plain_device_cpu.rc?.log": ("environment", "MemoryError: Out of memory.", 3),
}


@pytest.fixture
def logs(shared: Path) -> list[Path]:
    found = sorted((shared / "data" / "logs").iterdir())
    print(f"{len(found)} logs")
    assert found
    return found


def read(path: Path, step: int = 1 << 20) -> tuple[list[Line], PhaseReport]:
    folder, phases = Folder(), Phases()
    raw = path.read_bytes()
    lines: list[Line] = []
    for start in range(0, len(raw), step):
        new = folder.feed(raw[start : start + step])
        phases.feed(new, folder.pending)
        lines += new
    new = folder.finish()
    phases.feed(new)
    return lines + new, phases.report()


def test_no_line_holds_an_escape_and_no_record_is_lost(logs: list[Path]) -> None:
    for path in logs:
        raw = path.read_bytes()
        lines, _ = read(path)
        assert all(line.text.isprintable() for line in lines), path.name
        assert sum(line.starts_record for line in lines) == len(re.findall(rb"^\[QUARK-", raw, re.MULTILINE)), path.name
        rows = raw.split(b"\n")
        for line in lines:
            if line.starts_record:
                assert line.message[:20].encode() in rows[line.number - 1], path.name


def test_any_chunk_size_gives_the_same(logs: list[Path]) -> None:
    for path in logs:
        whole = read(path)
        for step in (1, 7, 61, 4096):
            assert read(path, step) == whole, (path.name, step)


def test_phases(logs: list[Path]) -> None:
    for path in logs:
        _, report = read(path)
        keys = [seen.key for seen in report.seen]
        assert keys == [key for key in PHASES if key in keys]
        succeeded = ".rc1" not in path.name and ".rc?" not in path.name
        if succeeded:
            asked = "evaluation" in path.name
            algorithm = "awq" in path.name or "gptq" in path.name
            assert keys == [
                key for key in PHASES if (key != "evaluate" or asked) and (key != "algorithm" or algorithm)
            ], path.name
            assert report.export_dir is not None
            assert report.exclude_table, path.name
            assert (report.perplexity is not None) is asked
            assert {name: count for name, _, count in report.replace_table}["Linear"] > 0
        else:
            assert report.export_dir is None


def test_the_facts_of_single_logs(shared: Path) -> None:
    folder = shared / "data" / "logs"
    _, gpu = read(folder / "013_gpu_fp8_with_evaluation.log")
    assert gpu.perplexity == 1040.9786376953125
    assert gpu.gpus_listed
    _, some = read(folder / "llama_exclude_some.rc0.log")
    assert some.exclude_table == (("lm_head", 1), ("*.0.self_attn.*", 4), ("*zzz_nothing*", 0), ("*self_attn*", 4))
    _, cpu = read(folder / "012_cpu_smollm2_fp8.log")
    assert cpu.quark_version == "0.12.post1"
    assert ("Linear", 211, 210) in cpu.replace_table


def test_failures(logs: list[Path]) -> None:
    """P-108: each failed run's class is tied to its own line."""
    seen = 0
    for path in logs:
        if path.name not in FAILURES:
            continue
        seen += 1
        kind, message, checkpoint = FAILURES[path.name]
        lines, _ = read(path)
        found = classify(lines, 1, None, FailureContext())
        assert (found.kind, found.checkpoint) == (kind, checkpoint), path.name
        assert found.message.startswith(message), path.name
        assert found.whole_error.startswith("Traceback (most recent call last):")
        number = int(re.match(r"line (\d+): ", found.evidence[0]).group(1))  # type: ignore[union-attr]
        assert message.encode() in path.read_bytes().split(b"\n")[number - 1], path.name
    print(f"{seen} failures")
    assert seen == len(FAILURES)


def test_the_tree_grows_with_the_log(logs: list[Path]) -> None:
    """A done task stays done for every prefix of every log."""
    for path in logs:
        lines, _ = read(path)
        phases = Phases()
        done: set[str] = set()
        for line in lines:
            phases.feed([line])
            tree = build(PtqSpec(evaluation=True), PtqEvidence(run="alive", phases=phases.report()))
            assert problems(tree, running=True) == []
            now = {task.key for task in tree if task.state == "done"}
            assert done <= now, (path.name, line.number)
            done = now
