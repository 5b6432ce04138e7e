"""What breaks if the probe is wrong: a run in another environment than the one that was shown."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quark_tui.io.target import Target, TargetProblem, find_interpreter, probe
from tests.support.waiting import until


def _script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def _distribution(site: Path, name: str, version: str, extra: str = "", record: str = "") -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}")
    (folder / "RECORD").write_text(record)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real virtual environment whose packages are metadata and poison: importing any of them would be seen."""
    root = tmp_path_factory.mktemp("with space") / "target"
    venv.create(root, with_pip=False, symlinks=True)
    site = next(root.glob("lib/python*/site-packages"))
    poison = f"open({str(root / 'imported')!r}, 'w').close()\n"
    for name in ("torch", "quark", "transformers", "datasets"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(poison)
    (site / "torch/version.py").write_text(
        "from typing import Optional\n"
        "__version__ = '2.9.1+rocm7.2'\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = '7.2.1'\n"
    )
    (site / "torch/utils").mkdir()
    (site / "torch/utils/cpp_extension.py").write_text("baton = FileBaton('lock')\n")
    _distribution(site, "torch", "2.9.1")
    _distribution(site, "onnxruntime-rocm", "1.22.2")
    _distribution(site, "onnxruntimes", "9.9")
    _distribution(
        site,
        "amd-quark",
        "0.12.post1",
        'Requires-Python: >=3.11,<3.14\nRequires-Dist: transformers<5.3,>5; extra == "cli"\n',
        "../../../bin/quark-cli,sha256=x,12\nquark/__init__.py,,\n",
    )
    _script(root / "bin/quark-cli", "#!/bin/sh\n")
    return root


@pytest.fixture(scope="module")
def found(environment: Path) -> Target:
    return probe(str(environment / "bin/python"), {"PATH": os.defpath})


def test_interpreter_facts_are_its_own(environment: Path, found: Target) -> None:
    """P-14: version and paths are the interpreter's; the link to the base interpreter is not followed."""
    assert found.executable == str(environment / "bin/python")
    assert Path(found.executable).is_symlink()
    assert found.prefix == str(environment)
    assert found.base_prefix == sys.base_prefix
    assert found.version == "{}.{}.{}".format(*sys.version_info[:3])
    assert found.is_venv
    assert not found.externally_managed
    assert not found.has_pip
    assert found.supported == (sys.version_info[:2] in {(3, 11), (3, 12), (3, 13)})


def test_packages_come_from_metadata_and_nothing_is_imported(environment: Path, found: Target) -> None:
    """P-14, P-21, P-22, I-21: versions or their absence, read without running any of the packages' code."""
    site = str(next(environment.glob("lib/python*/site-packages")))
    assert {name: item.version if item else None for name, item in found.packages.items()} == {
        "amd-quark": "0.12.post1",
        "torch": "2.9.1",
        "transformers": None,
        "datasets": None,
        "accelerate": None,
        "vllm": None,
        "onnxruntime-rocm": "1.22.2",
    }
    package = found.packages["torch"]
    assert package is not None
    assert package.location == site
    assert found.site_packages == (site,)
    assert site in found.search_path
    assert not (environment / "imported").exists()
    assert not list(Path(site).rglob("__pycache__"))


def test_torch_build_is_read_from_its_text(found: Target) -> None:
    assert found.torch is not None
    assert (found.torch.version, found.torch.cuda, found.torch.hip, found.torch.debug) == (
        "2.9.1+rocm7.2",
        None,
        "7.2.1",
        False,
    )
    assert found.torch.lock_file_blocks is True


def test_quark_command_and_root_are_those_of_the_same_environment(environment: Path, found: Target) -> None:
    """P-15, P-84: the command is the one that the distribution itself installed."""
    assert found.quark_cli == str(environment / "bin/quark-cli")
    assert found.quark_root == str(next(environment.glob("lib/python*/site-packages")))
    assert found.quark_requires == ('transformers<5.3,>5; extra == "cli"',)
    assert found.quark_requires_python == ">=3.11,<3.14"


def test_the_environment_given_is_the_one_seen(environment: Path, tmp_path: Path) -> None:
    """A PYTHONPATH that a run will have shows in the probe; one that it will not have does not."""
    _distribution(tmp_path, "vllm", "0.1")
    python = str(environment / "bin/python")
    seen = probe(python, {"PATH": os.defpath, "PYTHONPATH": str(tmp_path)}).packages["vllm"]
    assert seen is not None
    assert seen.location == str(tmp_path)
    assert probe(python, {"PATH": os.defpath}).packages["vllm"] is None


def test_the_caller_s_folder_is_not_searched(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')\n")
    monkeypatch.chdir(tmp_path)
    assert probe(str(environment / "bin/python"), {"PATH": os.defpath}).prefix == str(environment)


def test_an_interpreter_without_the_safe_path_option_is_asked_without_it(environment: Path, tmp_path: Path) -> None:
    """Pythons before 3.11 refuse -P: the probe takes its own folder off the search path instead."""
    real = environment / "bin/python"
    older = _script(
        tmp_path / "python",
        f'#!/bin/sh\nif [ "$1" = -P ]; then echo "Unknown option: -P" >&2; exit 2; fi\nexec "{real}" "$@"\n',
    )
    assert probe(older, {"PATH": os.defpath}).prefix == str(environment)


def test_a_site_hook_that_prints_does_not_hide_the_answer(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome \\x1b[31m')\n")
    assert probe(str(environment / "bin/python"), {"PATH": os.defpath, "PYTHONPATH": str(tmp_path)}).is_venv


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\nexit 0\n", "does not answer as a Python interpreter"),
        ("#!/bin/sh\nprintf 'garbage \\033[2J'\n", "does not answer as a Python interpreter"),
        ("#!/bin/sh\necho boom >&2\nexit 3\n", "does not answer as a Python interpreter"),
        ("#!/bin/sh\nexec sleep 60\n", "did not answer within"),
        (
            "#!/bin/sh\nwhile :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n",
            "prints",
        ),
        ("#!/nowhere/python\n", "cannot be started"),
        ('#!/bin/sh\n[ "$1" = -c ] && printf 2.7.18 && exit 0\nexit 1\n', "is Python 2.7.18, too old to be asked"),
        ('#!/bin/sh\n[ "$1" = -c ] && printf 3.12.4 && exit 0\nexit 1\n', "is Python 3.12.4, but its packages"),
        ("#!/bin/sh\necho '{\"quark_tui_probe\": 1}'\n", "gave an answer that cannot be used"),
        ("#!/bin/sh\necho quark_tui_probe; printf '[%.0s' $(seq 9999)\n", "does not answer as a Python interpreter"),
    ],
    ids=["silent", "garbage", "fails", "hangs", "floods", "no-shebang", "python2", "broken", "hollow", "no-json"],
)
def test_what_is_no_usable_interpreter_is_said_clearly(tmp_path: Path, text: str, said: str) -> None:
    fake = _script(tmp_path / "python", text)
    timeout = 0.5 if "sleep" in text else 20.0
    with pytest.raises(TargetProblem, match=said) as caught:
        probe(fake, {"PATH": os.environ["PATH"]}, timeout=timeout)
    assert "\x1b" not in caught.value.message + caught.value.evidence


def test_no_file_a_folder_and_an_odd_name(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none"), str(tmp_path), "a\0b", str(tmp_path / "x\x1b[31m")):
        with pytest.raises(TargetProblem) as caught:
            probe(path, {})
        assert caught.value.message.isprintable()


def _gone(pid: int) -> bool:
    """A killed process is still seen until the kernel has taken it off its processor, and until it is reaped."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_nothing_of_a_hanging_interpreter_is_left(tmp_path: Path) -> None:
    """Its whole process group is ended, and its pipes do not keep the probe waiting."""
    mark = tmp_path / "pid"
    fake = _script(tmp_path / "python", f"#!/bin/sh\nsleep 300 &\necho $! > {mark}\nwait\n")
    with pytest.raises(TargetProblem):
        probe(fake, {"PATH": os.environ["PATH"]}, timeout=0.5)
    until(lambda: _gone(int(mark.read_text())), "the end of what the interpreter had started")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_wrong_type_anywhere_is_a_clear_problem(data: st.DataObject) -> None:
    """Every field of the answer may hold anything: the result is a Target or a TargetProblem, never another error."""
    from quark_tui.io.target import _target

    sound: dict[str, object] = {
        "executable": "/e/bin/python",
        "prefix": "/e",
        "base_prefix": "/usr",
        "version": "3.12.1",
        "implementation": "CPython",
        "platform": "Linux",
        "machine": "x86_64",
        "is_venv": True,
        "externally_managed": False,
        "has_pip": True,
        "site_packages": ["/e/lib"],
        "search_path": ["/e/lib"],
        "packages": {"torch": {"version": "2.9", "location": "/e/lib"}},
        "torch": {"version": "2.9", "cuda": None, "hip": None, "debug": None, "file": "/e/lib/torch/version.py"},
        "quark": {"requires": [], "requires_python": None, "cli": None, "root": None},
    }
    assert _target(dict(sound), "p").supported
    for name in data.draw(st.lists(st.sampled_from(sorted(sound)), min_size=1, max_size=3)):
        sound[name] = data.draw(_JSON)
    try:
        result = _target(json.loads(json.dumps(sound)), "p")
    except TargetProblem:
        return
    assert isinstance(result.version, str)


def test_the_active_interpreter_is_found_in_order(tmp_path: Path) -> None:
    for name in ("venv", "conda", "path"):
        (tmp_path / name / "bin").mkdir(parents=True)
        _script(tmp_path / name / "bin" / "python", "#!/bin/sh\n")
    env = {
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "PATH": str(tmp_path / "path/bin"),
    }
    assert find_interpreter(env) == (str(tmp_path / "venv/bin/python"), "VIRTUAL_ENV")
    shutil.rmtree(tmp_path / "venv")
    assert find_interpreter(env) == (str(tmp_path / "conda/bin/python"), "CONDA_PREFIX")
    del env["CONDA_PREFIX"]
    assert find_interpreter(env) == (str(tmp_path / "path/bin/python"), "PATH")
    _script(tmp_path / "path/bin/python3", "#!/bin/sh\n")
    assert find_interpreter(env)[0] == str(tmp_path / "path/bin/python3")
    with pytest.raises(TargetProblem):
        find_interpreter({"PATH": str(tmp_path)})


def test_asking_imports_nothing_heavy_here() -> None:
    """P-70: nothing of Quark is imported in this process."""
    code = "import sys, quark_tui.io.target, quark_tui.engine.environment; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "quark", "datasets", "textual", "rich"} & set(loaded)
