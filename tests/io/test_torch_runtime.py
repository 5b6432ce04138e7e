"""What breaks if this is wrong: a torch that cannot work is said to, or a crash in it takes the program along."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quark_tui.core.text import clean_lines
from quark_tui.io import capture as capturing
from quark_tui.io.capture import Captured, capture
from quark_tui.io.torch_runtime import TorchRuntime, ask_torch, read_answer
from tests.support.waiting import until

_TORCH = """
import os, sys, signal
__version__ = "2.9.1+cu130"
float32 = "float32"

class version:
    cuda, hip = {cuda!r}, {hip!r}

class _Value:
    def __init__(self, value): self.value = value
    def item(self): return self.value

class _Ones:
    def __init__(self, value): self.value = value
    def __matmul__(self, other): return _Ones({product})
    def min(self): return _Value(self.value)
    max = min

def ones(shape, dtype, device):
{ones}
    return _Ones(1.0)

class cuda:
    is_available = staticmethod(lambda: {available})
    device_count = staticmethod(lambda: {count})
    synchronize = staticmethod(lambda device: None)
    @staticmethod
    def get_device_properties(index):
        class Facts:
            name, total_memory, major, minor = "Board \\x1b[2J%d" % index, 80 << 30, 9, 0
            gcnArchName = "gfx942:sramecc+"
        return Facts
"""


def _torch(
    folder: Path,
    *,
    head: str = "",
    ones: str = "    pass",
    product: str = "64.0",
    available: bool = True,
    count: int = 2,
    hip: str | None = None,
) -> dict[str, str]:
    """An environment whose torch is a stand-in of a few lines, found by PYTHONPATH."""
    text = _TORCH.format(
        cuda=None if hip else "13.0", hip=hip, product=product, ones=ones, available=available, count=count
    )
    (folder / "torch.py").write_text(head + text)
    return {"PATH": os.defpath, "PYTHONPATH": str(folder)}


def _ask(env: dict[str, str], timeout: float = 30.0) -> TorchRuntime:
    return ask_torch(sys.executable, env, timeout)


def test_each_device_is_asked_and_tried(tmp_path: Path) -> None:
    """P-14, P-11: count, names, memory and architecture as torch has them, and an operation on each device."""
    found = _ask(_torch(tmp_path))
    assert (found.available, found.count, found.complete, found.error) == (True, 2, True, "")
    assert [(one.index, one.name, one.memory, one.arch) for one in found.devices] == [
        (0, "Board \\x1b[2J0", 80 << 30, "9.0"),
        (1, "Board \\x1b[2J1", 80 << 30, "9.0"),
    ]
    assert [(one.index, one.error) for one in found.operations] == [(0, ""), (1, "")]
    assert (found.version, found.cuda, found.hip, found.ended) == ("2.9.1+cu130", "13.0", None, "exit status 0")


def test_the_architecture_of_an_amd_device_is_its_gfx_name(tmp_path: Path) -> None:
    """P-10: from gcnArchName, with no built-in list."""
    found = _ask(_torch(tmp_path, hip="7.2"))
    assert {one.arch for one in found.devices} == {"gfx942:sramecc+"}


def test_without_a_device_the_cpu_is_tried_and_the_build_stays_what_it_is(tmp_path: Path) -> None:
    """P-112: build family and runtime are two facts."""
    found = _ask(_torch(tmp_path, available=False, count=0, hip="7.2"))
    assert (found.available, found.count, found.hip) == (False, 0, "7.2")
    assert [(one.index, one.error) for one in found.operations] == [(None, "")]
    assert found.complete


@pytest.mark.parametrize(
    ("ones", "said"),
    [
        ("    raise RuntimeError('HIP error: invalid device function')", "device 0: RuntimeError: HIP error"),
        ("    if device == 'cuda:1': raise RuntimeError('no kernel image')", "device 1: RuntimeError: no kernel"),
    ],
)
def test_a_failing_operation_is_told_with_its_device(tmp_path: Path, ones: str, said: str) -> None:
    found = _ask(_torch(tmp_path, ones=ones))
    assert found.error.startswith(said)
    assert found.complete and found.imported


def test_a_wrong_product_is_no_success(tmp_path: Path) -> None:
    """A device that computes nonsense without an error does not work."""
    assert "not 64" in _ask(_torch(tmp_path, product="0.0")).error


def test_a_crash_keeps_what_was_known_and_its_signal(tmp_path: Path) -> None:
    """The signal, the step, the whole of stderr; the devices before it stay known."""
    noise = (
        "sys.stderr.write('first\\nHIP_HOME \\x1b[31m\\n'); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGSEGV)"
    )
    found = _ask(_torch(tmp_path, ones=f"    if device == 'cuda:1': {noise}"))
    assert (found.status, found.ended) == (-signal.SIGSEGV, "killed by SIGSEGV")
    assert "killed by SIGSEGV" in found.error and "device 1" in found.error
    assert [(one.index, one.error) for one in found.operations] == [(0, "")]
    assert found.stderr == "first\nHIP_HOME \\x1b[31m\n"
    assert not found.complete


def test_an_import_that_fails_is_not_a_missing_device(tmp_path: Path) -> None:
    """P-14: the error if the torch check itself fails, with the whole traceback."""
    found = _ask(_torch(tmp_path, head="raise ImportError('libamdhip64.so.7: cannot open shared object file')\n"))
    assert found.error == "ImportError: libamdhip64.so.7: cannot open shared object file"
    assert (found.imported, found.available, found.count) == (False, None, None)
    assert "Traceback" in found.stderr and found.status == 1


def test_a_torch_that_ends_the_process_is_told(tmp_path: Path) -> None:
    found = _ask(_torch(tmp_path, head="import os\nos._exit(7)\n"))
    assert found.error == "exit status 7; the last step was: importing torch"
    assert not found.imported


def test_a_hang_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """The limit of time is kept, unknown stays unknown, and no process is left behind."""
    mark = tmp_path / "pids"
    head = (
        "import os, subprocess\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        f"open({str(mark)!r}, 'w').write('%d %d' % (os.getpid(), child.pid))\n"
        "import time\ntime.sleep(300)\n"
    )
    found = _ask(_torch(tmp_path, head=head), timeout=2.0)
    assert (found.status, found.available, found.imported) == (None, None, False)
    assert found.error == "no answer within 2 s, so it was killed; the last step was: importing torch"
    for pid in mark.read_text().split():
        until(lambda pid=pid: _gone(int(pid)), f"the end of {pid}")


def _gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


def test_a_process_that_a_kill_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken GPU keeps a process in the kernel: its pid is told, and the answer comes all the same."""
    monkeypatch.setattr(capturing, "KILL_PATIENCE", 0.05)
    monkeypatch.setattr(capturing.os, "killpg", lambda pid, number: None)
    answer = capture(["sleep", "300"], {"PATH": os.environ["PATH"]}, timeout=0.05)
    monkeypatch.undo()
    assert answer.status is None and answer.stuck is not None
    os.kill(answer.stuck, signal.SIGKILL)
    until(lambda: _gone(answer.stuck), "the end of the process")
    capture(["true"], {"PATH": os.environ["PATH"]}, timeout=10.0)
    assert not Path(f"/proc/{answer.stuck}").exists(), "a later call reaps it"
    assert f"process {answer.stuck} does not end" in read_answer(answer, 1.0).error


def test_what_a_torch_prints_between_its_steps_does_not_hide_them(tmp_path: Path) -> None:
    head = "print('welcome', end='')\nprint('{\"quark_tui_torch\": 1, \"step\": [}')\n"
    assert _ask(_torch(tmp_path, head=head)).complete


def test_an_older_python_is_asked_without_the_safe_path_option(tmp_path: Path) -> None:
    older = tmp_path / "python"
    older.write_text(
        f'#!/bin/sh\nif [ "$1" = -P ]; then echo "Unknown option: -P" >&2; exit 2; fi\nexec "{sys.executable}" "$@"\n'
    )
    older.chmod(older.stat().st_mode | stat.S_IXUSR)
    assert ask_torch(str(older), _torch(tmp_path), 30.0).complete


@pytest.mark.parametrize("python", ["/nowhere/python", "a\0b", "/tmp"])
def test_an_interpreter_that_cannot_be_started_is_told(python: str) -> None:
    found = ask_torch(python, {"PATH": os.defpath}, 5.0)
    assert "cannot be started" in found.error and found.error.isprintable()


def test_nothing_of_quark_is_imported(tmp_path: Path) -> None:
    """P-70: torch is asked, Quark and its friends are not."""
    env = _torch(tmp_path)
    for name in ("quark", "transformers", "datasets", "accelerate"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    assert _ask(env).complete
    assert not (tmp_path / "imported").exists()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
_STEP = st.fixed_dictionaries(
    {"quark_tui_torch": st.just(1)},
    optional={
        "step": st.sampled_from(["import", "imported", "devices", "device", "operation", "failed", "end"]) | _JSON,
        **dict.fromkeys(("index", "available", "count", "name", "memory", "arch", "error", "version", "cuda"), _JSON),
    },
)


@given(st.lists(_STEP | _JSON, max_size=8), st.binary(max_size=40), st.none() | st.integers(-70, 255))
def test_any_answer_gives_safe_facts(steps: list[object], noise: bytes, status: int | None) -> None:
    lines = [json.dumps(step).encode() for step in steps]
    found = read_answer(Captured(status, b"\n".join([*lines, noise]), noise), 1.0)
    assert found.error.isprintable()
    assert clean_lines(found.stderr) == found.stderr
    assert found.error or (found.complete and status == 0)
    assert {type(found.available), type(found.count)} <= {bool, int, type(None)}


def test_asking_is_bounded_by_what_is_printed(tmp_path: Path) -> None:
    head = "import sys\nwhile True: sys.stderr.write('x' * 65536)\n"
    found = _ask(_torch(tmp_path, head=head))
    assert "printing without end" in found.ended
    assert len(found.stderr) <= 4 << 20


def test_asking_imports_nothing_heavy_here() -> None:
    code = "import sys, quark_tui.engine.torch_runtime; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "quark", "datasets", "textual", "rich", "psutil"} & set(loaded)
