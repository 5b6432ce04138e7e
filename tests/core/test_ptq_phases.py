"""Phases that a log witnesses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.logtext import Folder, Line
from quark_tui.core.ptq.phases import PHASES, Bar, PhaseReport, Phases, parse_bar


def record(text: str, level: str = "INFO") -> str:
    return f"\x1b[32m\n[QUARK-{level}]: {text}\x1b[0m\n"


def bar(name: str, done: int, total: int) -> str:
    return f"\r{name}: {100 * done // max(total, 1):3d}%|###       | {done}/{total} [00:01<00:09,  2.16it/s]"


TABLE = (
    "Module exclusion from quantization summary:\n"
    "|      Exclude pattern       | Number of modules excluded |\n"
    "|          lm_head           |             1              |\n"
    "|     *.experts.[0|1].*      |             0              |\n"
)
RUN = [
    record("C++ kernel loading check start."),
    record("Working directory is now=/opt/q/"),
    record("Loading model ..."),
    bar("Loading weights", 3, 21) + bar("Loading weights", 21, 21) + "\n",
    record("Initializing tokenizer from /m"),
    record("Loading dataset ..."),
    "\rGenerating validation split: 0 examples [00:00, ? examples/s]"
    "\rGenerating validation split: 600 examples [00:00, 40121.52 examples/s]\n",
    record("Using weight quantization and activation static quantization."),
    record('Quantizing with the quantization configuration:\nQConfig(\n    version="0.13",\n)'),
    record("In-place OPs replacement start."),
    record(TABLE),
    record("Advanced algorithm start."),
    record("Applying awq processing/algorithm..."),
    record("Calibration start."),
    bar("Calibrating all params", 89, 89) + "\n",
    bar("Calibrating activations", 16, 16) + "\n",
    record("Model quantization has been completed."),
    record("Freeze model start."),
    record("Exporting hugging face format safetensors..."),
    record("hf_format quantized model exported to /out dir/x successfully."),
    record("Evaluating ..."),
    "\rGenerating test split: 60 examples [00:00, 15847.50 examples/s]\n",
    record("Perplexity: 10.25"),
]


def read(*parts: str) -> PhaseReport:
    folder, phases = Folder(), Phases()
    for part in parts:
        phases.feed(folder.feed(part.encode()), folder.pending)
    phases.feed(folder.finish())
    return phases.report()


def test_a_whole_run() -> None:
    report = read(*RUN)
    assert [seen.key for seen in report.seen] == list(PHASES)
    assert [seen.state for seen in report.seen] == ["done"] * 9 + ["active"]
    assert report.current == "evaluate"
    assert report.perplexity == 10.25
    assert report.export_dir == "/out dir/x"
    assert report.exclude_table == (("lm_head", 1), ("*.experts.[0|1].*", 0))
    assert report.quark_version == "0.13"
    assert report.warnings == ()
    assert next(seen.detail for seen in report.seen if seen.key == "algorithm") == "awq"


def test_nothing_was_seen() -> None:
    assert read() == PhaseReport()
    assert read("hello\n", "W1130 no CUDA runtime\n").current is None


@pytest.mark.parametrize("count", range(1, len(RUN) + 1))
def test_a_done_phase_stays_done(count: int) -> None:
    before, after = read(*RUN[: count - 1]), read(*RUN[:count])
    assert {s.key for s in before.seen if s.state == "done"} <= {s.key for s in after.seen if s.state == "done"}
    assert {s.key for s in before.seen} <= {s.key for s in after.seen}


def test_progress_is_the_live_bar() -> None:
    report = read(*RUN[:14], bar("Calibrating activations", 0, 16), bar("Calibrating activations", 6, 16))
    assert report.current == "calibrate"
    assert report.progress is not None
    assert (report.progress.done, report.progress.total, report.progress.unit) == (6, 16, "batches")


def test_progress_ends_with_its_phase() -> None:
    assert read(*RUN[:5]).progress is None


def test_the_outer_of_two_nested_bars_is_the_progress() -> None:
    report = read(
        *RUN[:12],
        bar("Caching layer inputs", 16, 16) + "\n",
        bar("Applying GptqProcessor", 1, 4) + record("Start quantizing layer 2/4"),
        "\n" + bar("GPTQ quantizing columns", 3, 3) + "\x1b[A",
    )
    assert report.current == "algorithm"
    assert report.progress is not None
    assert (report.progress.done, report.progress.total, report.progress.unit) == (1, 4, "layers")


def test_a_bar_that_was_left_early_does_not_hide_later_ones() -> None:
    report = read(*RUN[:12], bar("first", 3, 9), "\n", bar("second", 9, 9), "\n", bar("third", 2, 5))
    assert report.progress is not None
    assert report.progress.name == "third"


def test_an_early_marker_later_takes_nothing_back() -> None:
    report = read(*RUN, record("Loading model ..."), bar("Loading weights", 1, 2))
    assert report.current == "evaluate"


def test_text_that_only_quotes_a_marker_is_no_marker() -> None:
    assert read(RUN[2], "print('Freeze model start.')\n", "Perplexity: 3.0\n").current == "model"


def test_the_splits_of_the_evaluation_are_no_calibration_data() -> None:
    assert read(RUN[2], "\rGenerating test split: 60 examples [00:00, 1.0 examples/s]\n").current == "model"


def test_bars_witness_phases_where_the_records_are_silenced() -> None:
    report = read(bar("Loading weights", 2, 2) + "\n", bar("Freezing quantized modules", 1, 9))
    assert report.current == "freeze"
    assert [s.key for s in report.seen] == ["model", "freeze"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (record("No tokens found in calibration dataset. Skipping.", "WARNING"), "no_tokens"),
        (record("The module: a.b received 0 tokens less than 1%", "WARNING"), "zero_tokens"),
        (record("The module: a.b received 12 tokens less than 1%", "WARNING"), "few_tokens"),
        (record("\nMoE EXPERT COVERAGE WARNING: 3 MoE expert(s) received 0 tokens\nmore", "WARNING"), "moe_coverage"),
        ("[QUARK-WARNING]: \nMoE EXPERT COVERAGE WARNING: 3 experts\n", "moe_coverage"),
        (record("For AWQ benchmark, batch_size should be 1", "WARNING"), "awq_batch_size"),
        (record("Requantizing 4 HF-dequantized layer(s) with mxfp4"), "requantized"),
        ("[transformers] Token indices sequence length is longer than 2048\n", "sequence_too_long"),
        ("\rCalibrating activations: 0it [00:00, ?it/s]\n", "no_batches"),
        (record("Perplexity: nan"), "perplexity_unusable"),
        (record("something new", "WARNING"), "other"),
    ],
)
def test_warnings(text: str, code: str) -> None:
    report = read(RUN[2], text)
    assert code in [warning.code for warning in report.warnings]
    assert report.perplexity is None


def test_a_warning_keeps_its_lines_together() -> None:
    report = read(record("\nMoE EXPERT COVERAGE WARNING: 3\nAffected: a, b", "WARNING"), "Traceback\n")
    assert [warning.message for warning in report.warnings] == ["MoE EXPERT COVERAGE WARNING: 3\nAffected: a, b"]


def test_warnings_and_tables_are_bounded() -> None:
    report = read(*[record(f"w {n}", "WARNING") for n in range(250)])
    assert len(report.warnings) == 100
    assert report.warnings_left_out == 150
    rows = "".join(f"| m{n} | 1 |\n" for n in range(12_000))
    assert len(read(record("Module exclusion from quantization summary:\n" + rows)).exclude_table) == 10_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AWQ:  50%|#####     | 1/2 [00:01<00:01,  1.40s/it]", ("AWQ", 1, 2, "it")),
        ("  0%|          | 0/9 [00:00<?, ?it/s]", ("", 0, 9, "it")),
        ("x: y: 5%|| 1.5k/30.0k [00:00<00:01, 2.0MB/s, a=b|c]", ("x: y", 1500, 30000, "B")),
        ("Generating s split: 12 examples [00:00, 9 examples/s]", ("Generating s split", 12, None, "examples")),
        ("0it [00:00, ?it/s]", ("", 0, None, "it")),
        ("W: 10%|# | 6/61 [0:00<0:00, 1it/s]Traceback (most recent call last):", ("W", 6, 61, "it")),
    ],
)
def test_bars(text: str, expected: tuple[str, int, int | None, str]) -> None:
    found = parse_bar(text)
    assert found is not None
    assert (found.name, found.done, found.total, found.unit) == expected


@pytest.mark.parametrize(
    "text", ["", "100%", "50%| no count", "| a | 3 |", "x" * 5000, "5%|" * 1300, "1.2.3/4 [", "3%| 1.2.3/4 ["]
)
def test_what_is_no_bar(text: str) -> None:
    assert parse_bar(text) is None


_TEXT = st.text(alphabet="abQ [](){}|%/:.,0159eitsk<?", max_size=40)


@given(_TEXT)
def test_any_text_is_a_bar_or_none(text: str) -> None:
    assert parse_bar(text) is None or isinstance(parse_bar(text), Bar)


@given(st.lists(st.one_of(st.sampled_from(RUN), _TEXT.map(lambda t: t + "\n"), _TEXT.map(record)), max_size=25))
def test_any_order_of_lines_gives_a_sound_report(parts: list[str]) -> None:
    report = read(*parts)
    keys = [seen.key for seen in report.seen]
    assert keys == [key for key in PHASES if key in keys]
    assert [s.key for s in report.seen if s.state == "active"] == ([report.current] if report.current else [])


@given(st.lists(st.sampled_from(RUN), max_size=20), st.integers(0, 20))
def test_feeding_at_once_or_in_parts_is_the_same(parts: list[str], cut: int) -> None:
    lines: list[Line] = Folder().feed("".join(parts).encode())
    whole, halves = Phases(), Phases()
    whole.feed(lines)
    halves.feed(lines[:cut])
    halves.feed(lines[cut:])
    assert whole.report() == halves.report()
