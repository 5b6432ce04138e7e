"""The prepared environment is what it is said to be, and the stock command runs in it without network."""

from __future__ import annotations

import subprocess
from pathlib import Path

from quark_tui.demo.setup import Settings, missing
from quark_tui.engine.environment import environment
from quark_tui.io.checkpoint import read_checkpoint
from quark_tui.io.target import probe
from tests.e2e.support.twin import TIMEOUT, Twin


def test_the_probe_sees_the_real_environment(target: Settings, quark_env: dict[str, str]) -> None:
    """P-09, P-14: versions, the command and torch's build, from a real installation."""
    assert missing(target) == ()
    seen = probe(str(target.python), quark_env)
    assert seen.executable == str(target.python)
    assert seen.quark_cli == str(target.quark_cli)
    assert (Path(seen.quark_root or "/none") / "quark").is_dir()
    versions = {name: package.version for name, package in seen.packages.items() if package}
    assert versions["amd-quark"] == "0.12.post1"
    assert set(versions) >= {"torch", "transformers", "datasets", "accelerate", "onnxruntime"}
    assert seen.torch is not None
    assert (seen.torch.version or "").startswith(str(versions["torch"]))


def test_the_real_environment_has_no_findings_but_those_of_the_host(
    target: Settings, quark_env: dict[str, str]
) -> None:
    """P-09: what the lock file pins is within what the installed amd-quark asks for."""
    codes = {finding.code for finding in environment(str(target.python), quark_env).findings}
    assert codes <= {"compiler_missing", "torch_gpu_mismatch"}


def test_env_says_the_same_from_outside(target: Settings, twin: Twin) -> None:
    """P-14: the plain twin's answer for the real environment."""
    status, answer, errors = twin("env", "--python", str(target.python), "--json")
    assert (status, errors) == (0, "")
    assert answer["schema"] == "quark-tui.env.v1"
    assert answer["interpreter"]["executable"] == str(target.python)
    assert answer["packages"]["amd-quark"]["version"] == "0.12.post1"


def test_the_stock_command_quantizes_the_tiny_model_offline(
    target: Settings, tiny_llama: Path, quark_env: dict[str, str], tmp_path: Path
) -> None:
    """The data and the compiled helper are there: nothing is downloaded, nothing is compiled."""
    argv = [
        str(target.quark_cli),
        "torch-llm-ptq",
        "--model_dir",
        str(tiny_llama),
        "--output_dir",
        str(tmp_path / "out"),
    ]
    argv += [
        "--quant_scheme",
        "fp8",
        "--device",
        "cpu",
        "--num_calib_data",
        "8",
        "--seq_len",
        "64",
        "--skip_evaluation",
    ]
    before = sorted(path.stat().st_mtime_ns for path in target.torch_extensions.rglob("*.so"))
    done = subprocess.run(argv, env=quark_env, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Successfully exported model" in done.stderr
    written = read_checkpoint(tmp_path / "out")
    dtypes = [tensor.dtype for shard in written.shards for tensor in shard.tensors.values()]
    assert dtypes.count("F8_E4M3") == 14
    assert sorted(path.stat().st_mtime_ns for path in target.torch_extensions.rglob("*.so")) == before
