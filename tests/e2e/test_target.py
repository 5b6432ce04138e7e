"""The prepared environment is what it is said to be."""

from __future__ import annotations

from pathlib import Path

from quark_tui.demo.setup import Settings, missing
from quark_tui.engine.environment import environment
from quark_tui.io.target import probe
from tests.e2e.support.twin import Twin


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
