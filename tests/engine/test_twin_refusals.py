"""Each refusal, end to end through ``plan``: a refused change changes nothing, and says what would be accepted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quark_tui.demo.setup import Settings
from tests.e2e.support.environment import borrowed

from .conftest import SOUND, Inside, Maker, PlainJob, codes

ROOT = Path(__file__).parents[2]


def _refused(job: PlainJob, code: str, *words: str) -> None:
    before, plan = job.bytes(), (job.path / "quant_plan.json").read_bytes()
    answer = job.plan(*words, exit=1)
    assert code in codes(answer, "block"), (code, codes(answer))
    finding = next(f for f in answer["findings"] if f["code"] == code and f["level"] == "block")
    assert finding["evidence"] and finding["next_step"], finding
    assert job.bytes() == before and (job.path / "quant_plan.json").read_bytes() == plan
    assert job.plan()["digest"] == answer["digest"], "the answer shows the plan as it still is"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("path_not_absolute", ["--set", "output_dir=out"]),
        ("path_not_absolute", ["--set", "output_dir=~/out"]),
        ("path_not_absolute", ["--set", "template_file=template.json"]),
        ("output_not_empty", ["--set", "output_dir={full}"]),
        ("output_not_empty", ["--set", "output_dir={file}"]),
        ("output_is_model", ["--set", "output_dir={model}"]),
        ("output_is_model", ["--set", "output_dir={model}/"]),
        ("output_is_model", ["--set", "output_dir={linked}"]),
        ("output_in_prefix", ["--set", "output_dir={prefix}/out"]),
        ("parent_not_writable", ["--set", "output_dir={file}/out"]),
        ("scheme_unknown", ["--set", "global_scheme=fp9"]),
        ("scheme_unknown", ["--set", "global_scheme=FP8"]),
        ("scheme_unknown", ["--override", "*o_proj=nope"]),
        ("scheme_not_exportable", ["--set", "global_scheme=mx6"]),
        ("scheme_not_exportable", ["--override", "*o_proj=mx6"]),
        ("kv_unsupported", ["--set", "kv_cache_scheme=int8"]),
        ("algorithm_unsupported", ["--set", "algorithm=nope"]),
        ("algorithm_unsupported", ["--set", "algorithm=awq,nope"]),
        ("batch_exceeds_samples", ["--set", "batch_size=17"]),
        ("batch_exceeds_samples", ["--set", "num_calib_data=4", "--set", "batch_size=8"]),
        ("override_overlaps", ["--override", "*o_proj=int8", "--override", "*self_attn*=ptpc_fp8"]),
        ("override_shadowed", ["--override", "lm_head=int8"]),
        ("pattern_matches_nothing", ["--override", "*x_proj=int8"]),
        ("pattern_matches_nothing", ["--exclude", "*x_proj"]),
        ("pattern_matches_nothing", ["--exclude", "*O_PROJ"]),
        ("excludes_everything", ["--exclude", "*"]),
        ("excludes_everything", ["--set", 'exclude_layers=["*proj", "lm_head"]']),
        ("devices_missing", ["--set", "device_strategy=single", "--set", "devices=[0]"]),
        ("devices_missing", ["--set", "device_strategy=multi_device"]),
        ("template_missing", ["--set", "template_file={model}/config.json"]),
    ],
)
def test_a_refused_change(code: str, words: list[str], job: PlainJob, model: Path, target: Settings) -> None:
    """P-51, P-54, P-57, P-69, P-82, P-103: refused with the reason before anything depends on it."""
    places = {name: job.inside.folder / name for name in ("full", "file", "linked")}
    places["full"].mkdir()
    (places["full"] / "something").touch()
    places["file"].touch()
    places["linked"].symlink_to(model)
    named = {**{name: str(path) for name, path in places.items()}, "model": str(model)}
    named["prefix"] = str(target.python.parent.parent)
    _refused(job, code, *[word.format(**named) if "{" in word else word for word in words])


def test_group_size_indivisible(make: Maker, target: Settings) -> None:
    """96 input features are no multiple of 64: quark-cli would fail after all the work."""
    job = make("global_scheme=int4_wo_32", *SOUND[1:], model=target.models["tiny-llama-h96"])
    job.confirm("analysis")
    for scheme in ("int4_wo_64", "int4_wo_128", "uint4_wo_64"):
        _refused(job, "group_size_indivisible", "--set", f"global_scheme={scheme}")
    _refused(job, "group_size_indivisible", "--override", "*q_proj=int4_wo_64")


def test_template_missing(make: Maker, target: Settings) -> None:
    """P-35: no template for gpt2: Checkpoint 2 cannot be passed."""
    job = make(*SOUND, model=target.models["tiny-gpt2"])
    job.confirm("analysis")
    assert "template_missing" in codes(job.plan(exit=1), "block")
    assert "template_missing" in codes(job.confirm("plan", exit=1), "block")


def test_compute_undecided(make: Maker) -> None:
    """P-19, P-72: on a machine without GPU nothing is computed anywhere until somebody says where."""
    job = make("global_scheme=fp8", "num_calib_data=16")
    job.confirm("analysis")
    shown = job.plan(exit=1)
    assert codes(shown, "block") == ["compute_undecided"]
    assert codes(job.confirm("plan", exit=1), "block") == ["compute_undecided"]
    assert codes(job.set("device_strategy=cpu"), "block") == []


def test_a_decision_can_be_taken_back(job: PlainJob) -> None:
    """Without a scheme the plan is open again, which is no reason to refuse."""
    assert codes(job.set("global_scheme=none", exit=1), "block") == ["scheme_missing"]
    assert job.record()["wishes"]["values"]["global_scheme"] is None
    assert not (job.path / "quant_plan.json").exists()


def test_quark_needs_gpu(make: Maker, target: Settings, tmp_path: Path) -> None:
    """P-72: a release that cannot compute on the CPU is named, with one that can."""
    prefix = borrowed(target, tmp_path / "newer")
    metadata = next(prefix.glob("lib/python3.*/site-packages/amd_quark-*.dist-info/METADATA"))
    text = metadata.read_text()
    metadata.write_text(text.replace("\nVersion: 0.12.post1\n", "\nVersion: 0.13\n"))
    job = make("global_scheme=fp8", python=prefix / "bin" / "python")
    job.confirm("analysis")
    assert "quark_needs_gpu" in codes(job.plan(exit=1), "block")
    before = job.bytes()
    answer = job.set("device_strategy=cpu", exit=1)
    assert "quark_needs_gpu" in codes(answer, "block") and job.bytes() == before


def test_no_space(inside: Inside, target: Settings, model: Path, tmp_path: Path) -> None:
    """P-120: more than is free where the output goes: said before the run, not after it."""
    mount = tmp_path / "small"
    mount.mkdir()
    words = ["new", "job", "--workflow", "ptq", "--model", str(model), "--python", str(target.python)]
    words += ["--set", "global_scheme=fp8", "--set", f"output_dir={mount}/out", "--json"]
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from quark_tui.cli import main; sys.exit(main())"
    script = 'mount -t tmpfs -o size=64k none "$1" && shift && exec "$@"'
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(mount)),
            *(sys.executable, "-c", code, str(ROOT), *words),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, "") and "no_space" in codes(answer, "block")
    assert not (tmp_path / "job").exists()


def test_fewer_samples_want_a_reason(job: PlainJob) -> None:
    """P-61: taken with a low finding; with a reason without one."""
    assert "fewer_samples" in codes(job.plan(), "low")
    answer = job.plan("--reason", "num_calib_data=a smoke test")
    assert "fewer_samples" not in codes(answer)
    row = next(row for row in answer["rows"] if row["key"] == "num_calib_data")
    assert "a smoke test" in row["reason"] and row["changed"] is True


def test_the_order_of_overrides_is_kept_and_decides(job: PlainJob) -> None:
    """P-56: first match wins, the same pattern replaces in place, an empty scheme removes."""
    shown = job.plan("--override", "*q_proj=int8", "--override", "*down_proj=ptpc_fp8")
    assert list(shown["plan"]["layer_quant_config"]) == ["*q_proj", "*down_proj"] == shown["plan"]["layer_order"]
    shown = job.plan("--override", "*q_proj=ptpc_fp8")
    assert shown["plan"]["layer_quant_config"] == {"*q_proj": "ptpc_fp8", "*down_proj": "ptpc_fp8"}
    assert shown["plan"]["layer_order"] == ["*q_proj", "*down_proj"]
    shown = job.plan("--override", "*q_proj=")
    assert shown["plan"]["layer_order"] == ["*down_proj"]
    entry = next(one for one in shown["patterns"] if one["kind"] == "override")
    assert (entry["pattern"], entry["matches"], entry["effective"]) == ("*down_proj", 2, 2)


def test_excludes_explicit_and_the_templates_own(job: PlainJob) -> None:
    """P-55, P-67: adding one makes the list explicit; ``[]`` is a deliberate none."""
    assert job.plan()["plan"]["exclude_layers_source"] == "template"
    shown = job.plan("--exclude", "*o_proj")["plan"]
    assert (shown["exclude_layers_source"], shown["exclude_layers"]) == ("explicit", ["lm_head", "*o_proj"])
    shown = job.set("exclude_layers=[]")["plan"]
    assert (shown["exclude_layers_source"], shown["exclude_layers"]) == ("explicit", [])
    shown = job.set("exclude_layers=template")["plan"]
    assert (shown["exclude_layers_source"], shown["exclude_layers"]) == ("template", ["lm_head"])


def test_the_model_is_never_written_to(make: Maker, model: Path) -> None:
    """P-08: an output inside the model folder, and every refusal before, leave it as it was."""
    before = {path.name: path.stat().st_mtime_ns for path in model.iterdir()}
    job = make(*SOUND)
    job.confirm("analysis")
    job.plan("--set", f"output_dir={model}/out")
    job.confirm("plan")
    job.inside.ask("command", str(job.path))
    assert {path.name: path.stat().st_mtime_ns for path in model.iterdir()} == before
    shutil.rmtree(model)
    assert "model_unreadable" in job.inside.ask("command", str(job.path), exit=1)["blocked"]
