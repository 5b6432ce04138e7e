"""Runs with real processes: who records the end, whatever is killed; what is refused; what a reader is told."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from quark_tui.core.run import verdict
from quark_tui.io.runs import evidence, launcher, process
from quark_tui.io.runs.reading import read_run
from tests.support.runs import ROOT, HeldRun, make_job, start
from tests.support.waiting import until


@pytest.fixture
def job(tmp_path: Path):
    return make_job(tmp_path / "job")


@pytest.fixture
def held(job: Path):
    run = start(job)
    yield run
    run.close()


def test_a_run_is_recorded_and_its_keepers_leave(held: HeldRun) -> None:
    """P-94: the exact command runs; its end, its output and its process are on record."""
    state = read_run(str(held.folder))
    assert (state.liveness, state.exit) == ("alive", None)
    assert state.process is not None and state.process["pid"] == held.pids["child"]
    assert state.process["start_ticks"] == process.start_ticks(held.pids["child"])
    held.release(7)
    end = held.exit()
    assert (end["status"], end["signal"], end["recorded_by"], end["stopped_by"]) == (7, None, "supervisor", None)
    held.gone("guard")
    held.gone("supervisor")
    assert held.log() == "begun\nended\n"
    state = read_run(str(held.folder))
    assert state.exit is not None and state.exit.peak_memory_bytes and state.exit.peak_memory_bytes > 1 << 20
    assert not list(held.folder.glob(".exit.*")), "reserved space is given back"
    assert held.folder.stat().st_mode & 0o777 == 0o700


def test_the_log_is_given_its_space_and_trimmed(held: HeldRun) -> None:
    """A full disk would kill the child at its next write; the size that readers see stays what was written."""
    record = json.loads((held.folder / "run.json").read_text())["log"]
    log = held.folder / "output.log"
    if record["preallocated_bytes"]:
        assert log.stat().st_blocks * 512 >= record["preallocated_bytes"]
    else:
        assert record["problem"]
    assert log.stat().st_size == len("begun\n")
    held.release()
    held.exit()
    held.gone("supervisor")
    assert log.stat().st_blocks * 512 <= 1 << 16


_PAIRS = [
    pair
    for names in itertools.combinations(["launcher", "guard", "supervisor", "child"], 2)
    for pair in itertools.permutations(names)
]


@pytest.mark.parametrize("names", _PAIRS, ids="+".join)
def test_any_two_killed_lose_nothing(held: HeldRun, names: tuple[str, str]) -> None:
    """Every ordered pair, killed at once: the end is recorded by whoever is left, or told from the lock."""
    held.kill(*names)
    if set(names) == {"guard", "supervisor"}:
        assert read_run(str(held.folder)).liveness == "alive", "the child's own lock outlives its keepers"
        held.release()
        held.gone("child")
        state = read_run(str(held.folder))
        assert (state.liveness, state.exit) == ("dead", None)
        assert verdict(state.exit, state.liveness, True, None) == ("dead", "unknown")
        assert verdict(state.exit, state.liveness, False, None) == ("dead", "interrupted")
        return
    if "child" not in names:
        assert read_run(str(held.folder)).liveness == "alive"
        held.release(3)
    end = held.exit()
    assert (end["status"], end["signal"]) == ((None, 9) if "child" in names else (3, None))
    assert end["recorded_by"] == ("guard" if "supervisor" in names else "supervisor")
    assert end["stopped_by"] is None
    for name in {"guard", "supervisor"} - set(names):
        held.gone(name)


def test_all_keepers_and_the_child_killed(held: HeldRun) -> None:
    held.kill("launcher", "guard", "supervisor", "child")
    state = read_run(str(held.folder))
    assert (state.liveness, state.exit) == ("dead", None)


def test_a_deaf_launcher_does_not_make_a_deaf_child(job: Path) -> None:
    """An ignored SIGINT is inherited through exec; Stop would never work."""
    run = start(job, deaf=True)
    fields = dict(
        line.split(":\t")
        for line in Path(f"/proc/{run.pids['child']}/status").read_text().splitlines()
        if ":\t" in line
    )
    assert int(fields["SigBlk"], 16) == 0
    assert int(fields["SigIgn"], 16) & ((1 << (signal.SIGHUP - 1)) | (1 << (signal.SIGINT - 1))) == 0
    with open(run.folder / "stops.jsonl", "w") as file:
        file.write(json.dumps({"signal": "INT"}) + "\n")
    assert process.signal_group(run.pids["child"], process.start_ticks(run.pids["child"]) or 0, signal.SIGINT)
    end = run.exit()
    assert end["stopped_by"] == "INT" and (end["signal"] == 2 or end["status"] == 130)
    run.close()


def test_a_signal_that_nobody_recorded_is_not_ours(held: HeldRun) -> None:
    os.kill(held.pids["child"], signal.SIGTERM)
    end = held.exit()
    assert (end["signal"], end["stopped_by"]) == (15, None)


def test_signalling_needs_the_very_process(held: HeldRun) -> None:
    ticks = process.start_ticks(held.pids["child"])
    assert ticks is not None
    assert not process.signal_group(held.pids["child"], ticks + 1, signal.SIGKILL)
    assert read_run(str(held.folder)).liveness == "alive"


def test_the_archive_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    """The keepers outlive an upgrade or removal of quark-tui; everything is imported before the first fork."""
    archive = tmp_path / "supervisor.pyz"
    launcher.write_archive(str(archive))
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import quark_tui.io.runs.supervisor\n"
        "own = {n: m.__file__ for n, m in sys.modules.items() if n.startswith('quark_tui')}\n"
        "print('\\n'.join(sorted(own.values())))\n"
        "assert not any('site-packages' in (getattr(m, '__file__', '') or '') for m in list(sys.modules.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(archive)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert all(line.startswith(str(archive)) for line in done.stdout.splitlines())
    carried = {f"quark_tui/{name}" for name in launcher.CARRIED}
    assert {line.removeprefix(f"{archive}/") for line in done.stdout.splitlines()} == carried
    with zipfile.ZipFile(archive) as names:
        for name in carried:
            assert names.read(name) == (ROOT / name).read_bytes()


def test_quark_tui_removed_while_it_runs(job: Path, tmp_path: Path) -> None:
    """Site-packages can go in hour 6; hour 12 is recorded all the same."""
    elsewhere = tmp_path / "site"
    shutil.copytree(ROOT / "quark_tui", elsewhere / "quark_tui", ignore=shutil.ignore_patterns("__pycache__"))
    run = start(job, pythonpath=elsewhere)
    shutil.rmtree(elsewhere)
    run.release(0)
    end = run.exit()
    assert (end["status"], end["recorded_by"]) == (0, "supervisor")
    run.close()


def _guard_again(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "supervisor.pyz"), "guard", str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, "CHILD_SOURCE": "pass", "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def prepared(job: Path, tmp_path: Path):
    """An approved run folder in another job whose command was not started: as a launcher leaves it before the guard."""
    run = start(job, child="pass", holds=False)
    run.exit()
    run.close()
    until(lambda: not list(run.folder.glob(".exit.*")), "guard and supervisor have left")
    record = json.loads((run.folder / "run.json").read_text())
    shutil.rmtree(run.folder)
    fresh = run.folder.with_name("fresh")
    fresh.mkdir(mode=0o700)
    launcher.write_archive(str(fresh / "supervisor.pyz"))
    record["process"] = None
    (fresh / "run.json").write_text(json.dumps(record))
    return fresh


def _refusal(folder: Path, **environment: str) -> dict:
    done = _guard_again(folder, **environment)
    record = json.loads((folder / "run.json").read_text())
    assert record["process"] is None and not (folder / "exit.json").exists(), "nothing started"
    assert not (folder / "output.log").exists()
    assert "Traceback" not in done.stderr
    return record["refused"]


def test_an_unchanged_prepared_run_starts(prepared: Path) -> None:
    """The tamper tests below mean something only because this one runs."""
    _guard_again(prepared)
    until(lambda: (prepared / "exit.json").exists(), "the end is recorded")
    assert json.loads((prepared / "exit.json").read_text())["status"] == 0


@pytest.mark.parametrize("name", ["quant_plan.json", "model/config.json", "model/modeling_own.py"])
def test_one_changed_byte_starts_nothing(prepared: Path, job: Path, name: str) -> None:
    """P-92: what would run is checked over the files themselves, and each difference is named."""
    path = job / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    refused = _refusal(prepared)
    assert refused["code"] == "digest_differs"
    assert [line.split(":")[0] for line in refused["differences"]] == [str(path)]


def test_a_new_remote_code_file_starts_nothing(prepared: Path, job: Path) -> None:
    (job / "model" / "another.py").write_text("print('hello')\n")
    refused = _refusal(prepared)
    assert [line.split(":")[0] for line in refused["differences"]] == [str(job / "model" / "another.py")]


def test_a_changed_variable_starts_nothing(prepared: Path) -> None:
    refused = _refusal(prepared, QUARK_OF_A_TEST="other")
    assert refused["differences"] == ["environment QUARK_OF_A_TEST: not there → other"]


def test_a_changed_argv_in_run_json_starts_nothing(prepared: Path) -> None:
    record = json.loads((prepared / "run.json").read_text())
    record["commands"][0]["argv"][2] = "print('something else')"
    (prepared / "run.json").write_text(json.dumps(record))
    refused = _refusal(prepared)
    assert refused["code"] == "digest_differs" and "run.json" in refused["differences"][0]


def test_a_digest_is_used_once(prepared: Path, job: Path) -> None:
    """P-92: one approval, one start."""
    _guard_again(prepared)
    until(lambda: (prepared / "exit.json").exists(), "the end is recorded")
    again = prepared.with_name("again")
    shutil.copytree(prepared, again)
    record = json.loads((again / "run.json").read_text())
    record["process"] = None
    (again / "run.json").write_text(json.dumps(record))
    for name in ("exit.json", "output.log", "alive.lock"):
        (again / name).unlink()
    assert _refusal(again)["code"] == "digest_used"
    assert "Traceback" not in _guard_again(prepared).stderr
    assert json.loads((prepared / "run.json").read_text())["process"], "the record of the run that was stays"


def test_a_live_run_of_the_job_keeps_others_from_starting(job: Path, held: HeldRun) -> None:
    other = start(job, child="import sys; sys.exit(0)")
    assert not other.pids
    assert read_run(str(other.folder)).run["refused"]["code"] == "already_running"
    other.launcher.communicate()


def test_a_command_that_cannot_be_executed(tmp_path: Path) -> None:
    job = make_job(tmp_path / "job")
    source = "import os, sys; os.environ['CHILD_SOURCE'] = ''\n"
    code = (
        source
        + "from quark_tui.core.approval import approval_digest\nfrom quark_tui.core.command import Command\n"
        + "from quark_tui.io.runs import evidence, launcher\n"
        + f"job = {str(job)!r}\ncommand = Command(('/nowhere/quark-cli',), job)\n"
        + "subject = evidence.Subject((), None, sys.executable, ())\ninputs = evidence.collect(subject, os.environ)\n"
        + "digest = approval_digest([command], inputs)\n"
        + "s = launcher.launch(job, 'ptq', [command], digest, subject, inputs, 'cli', True, None)\n"
        + "import json; print(json.dumps([s.pid, s.refused, s.folder]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    pid, refused, folder = json.loads(done.stdout)
    assert pid is None and refused["code"] == "exec_failed" and "No such file" in refused["message"]
    state = read_run(folder)
    assert (state.liveness, state.exit) == (None, None)
    assert "never started" in state.liveness_evidence


def test_a_full_disk_under_the_log(tmp_path: Path) -> None:
    """The run folder's filesystem fills up after the start: the child's output and its end are recorded."""
    mount = tmp_path / "small"
    mount.mkdir()
    code = (
        "import os, sys, pathlib\n"
        "from tests.support.runs import make_job, start\n"
        "job = make_job(pathlib.Path(sys.argv[1]) / 'job')\n"
        "run = start(job, child='''\nimport sys\nprint(\"begun\", flush=True)\nopen(sys.argv[1]).read()\n"
        "for n in range(2000): print(\"x\" * 100, flush=True)\n''')\n"
        "try:\n"
        "    with open(sys.argv[1] + '/filler', 'wb', buffering=0) as f:\n"
        "        while True: f.write(b'0' * 65536)\n"
        "except OSError as e: print(e)\n"
        "run.release(); end = run.exit(); run.close()\n"
        "print(end['status'], len(run.log()))\n"
    )
    script = 'mount -t tmpfs -o size=24m none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", mount, sys.executable, code],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[Errno 28] No space left on device", f"0 {6 + 2000 * 101}"]


def test_other_hosts_boots_and_namespaces(held: HeldRun) -> None:
    """A lock that nobody is seen to hold proves an end only where its holder would be seen."""
    held.kill("guard", "supervisor", "child")
    path = held.folder / "run.json"
    genuine = json.loads(path.read_text())

    def told(**changes: str | None) -> str | None:
        record = json.loads(json.dumps(genuine))
        record["process"]["host"].update(changes)
        path.write_text(json.dumps(record))
        return read_run(str(held.folder)).liveness

    assert told() == "dead"
    assert told(boot_id="another") == "dead"
    assert told(name="elsewhere") == "unknown"
    assert told(pid_namespace="pid:[1]") == "unknown"
    assert told(boot_id=None) == "unknown"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"status": 0, "signal": 9}', '{"status": true}', "\x00" * 20])
def test_a_damaged_exit_record_is_told(held: HeldRun, text: str) -> None:
    held.kill("guard", "supervisor", "child")
    (held.folder / "exit.json").write_text(text)
    state = read_run(str(held.folder))
    assert state.exit is None and state.exit_problem.startswith("exit.json")


def test_keepers_killed_before_the_record_was_made(held: HeldRun) -> None:
    """The process wrote itself into its lock before exec: the run is alive, its approval used, and it can be told."""
    held.kill("guard", "supervisor")
    path = held.folder / "run.json"
    record = json.loads(path.read_text())
    pid = record["process"]["pid"]
    record["process"] = None
    path.write_text(json.dumps(record))
    state = read_run(str(held.folder))
    assert state.liveness == "alive" and state.process is not None
    assert (state.process["pid"], state.process["start_ticks"]) == (pid, process.start_ticks(pid))
    assert evidence.started_runs(str(held.folder.parent)) == [held.folder.name]
    started = launcher._from_record(str(held.folder), held.folder.name)
    assert (started.pid, started.refused) == (pid, None)


def test_a_job_that_is_moved_while_it_runs(held: HeldRun, tmp_path: Path) -> None:
    """The keepers write relative to the run folder, wherever it is by then."""
    moved = tmp_path / "elsewhere"
    held.release(4)
    held.job.rename(moved)
    folder = moved / held.folder.relative_to(held.job)
    end = json.loads(until(lambda: (folder / "exit.json").exists() and (folder / "exit.json").read_text(), "exit.json"))
    assert end["status"] == 4
    until(lambda: not list(folder.glob(".exit.*")), "the reserves are given back")
    held.folder, held.job = folder, moved


def test_a_copy_of_a_living_run_is_not_taken_for_it(held: HeldRun, tmp_path: Path) -> None:
    """Its lock is free and the process lives: it belongs to the folder that it was copied from."""
    copy = tmp_path / "copy"
    shutil.copytree(held.folder, copy / ".quark-tui" / "runs" / held.folder.name)
    state = read_run(str(copy / ".quark-tui" / "runs" / held.folder.name))
    assert state.liveness == "unknown" and str(held.folder) in state.liveness_evidence


def test_code_behind_a_linked_folder_counts(tmp_path: Path) -> None:
    """P-92: what a model imports through a link is remote code like any other; a loop of links ends."""
    model, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    model.mkdir()
    elsewhere.mkdir()
    (elsewhere / "helper.py").write_text("A = 1\n")
    (model / "pkg").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(model)
    subject = evidence.Subject((), str(model), sys.executable, ())
    before = evidence.collect(subject, {})["files"]
    (elsewhere / "helper.py").write_text("A = 2\n")
    after = evidence.collect(subject, {})["files"]
    assert [one["path"] for one, two in zip(before, after, strict=True) if one != two] == [str(model / "pkg/helper.py")]
