"""A whole job, driven through the plain twin alone: new, both checkpoints, the command, the run, the result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from quark_tui.io.runs import process
from tests.e2e.support.contracts import Contracts
from tests.e2e.support.twin import Twin, task
from tests.support.waiting import until

ARTIFACTS = ("model_analysis.json", "quant_plan.json", "run_manifest.yaml")


@dataclass
class Job:
    """A job folder at ``path``. Each method is one command and asserts what that command owes whoever asks."""

    twin: Twin
    path: str
    model: Path
    python: str
    contracts: Contracts
    digests: dict[str, str] = field(default_factory=dict)
    command_answer: dict[str, Any] = field(default_factory=dict)
    run_answer: dict[str, Any] = field(default_factory=dict)
    output: Path = Path()

    def __post_init__(self) -> None:
        self.named = [] if self.output == Path() else ["--output", str(self.output)]
        self.output = self.output if self.named else Path(self.path) / "out"

    @property
    def run_folder(self) -> Path:
        return Path(self.run_answer["run_folder"])

    @property
    def pid(self) -> int:
        return int(self.run_answer["pid"])

    def new(self, *sets: str) -> dict[str, Any]:
        words = ["--workflow", "ptq", "--model", str(self.model), "--python", self.python, *self.named]
        answer = self.twin.ask("new", self.path, *words, *_sets(sets))
        assert answer["job"] == self.path
        assert not self.output.exists(), "nothing is made for the output"
        self.valid("model_analysis.json")
        return answer

    def plan(self, *words: str, exit: int = 0) -> dict[str, Any]:
        answer = self.twin.ask("plan", self.path, *words, exit=exit)
        self.digests["analysis"] = answer["analysis_digest"]
        if answer["digest"] is not None:
            self.digests["plan"] = answer["digest"]
        return answer

    def confirm(self, checkpoint: str, *words: str) -> dict[str, Any]:
        answer = self.twin.ask("confirm", self.path, checkpoint, "--digest", self.digests[checkpoint], *words)
        assert (answer["checkpoint"], answer["via"]) == (checkpoint, "cli")
        assert answer["confirmed_at"].endswith("Z") and answer["next"].startswith("quark-tui ")
        self.valid("model_analysis.json")
        return answer

    def command(self) -> dict[str, Any]:
        answer = self.twin.ask("command", self.path)
        (only,) = answer["commands"]
        assert only["cwd"] == self.path and answer["blocked"] == []
        assert len(answer["digest"]) == 64
        self.digests["command"] = answer["digest"]
        self.command_answer = answer
        return answer

    def ready(self, *words: str, sets: Sequence[str] = (), made_with: Sequence[str] = ()) -> dict[str, Any]:
        """Everything up to a command that waits for its approval; ``words`` are those of ``plan``."""
        self.new(*made_with)
        before = self.plan(exit=0 if made_with else 1)
        assert made_with or "scheme_missing" in [f["code"] for f in before["findings"] if f["level"] == "block"]
        assert "analysis_unconfirmed" in [f["code"] for f in before["findings"] if f["level"] == "info"]
        assert not (Path(self.path) / "quant_plan.json").exists(), "no planning before Checkpoint 1"
        self.confirm("analysis")
        shown = self.plan(*_sets(sets), *words)
        self.valid("model_analysis.json", "quant_plan.json")
        assert self.artifact("quant_plan.json")["requires_confirmation"] is True
        assert shown["plan"] == self.artifact("quant_plan.json")
        self.confirm("plan")
        assert self.artifact("quant_plan.json")["requires_confirmation"] is False
        self.valid(*ARTIFACTS)
        answer = self.command()
        assert not self.output.exists() and self.runs() == [], "nothing starts and nothing is made before the approval"
        return answer

    def run(self) -> dict[str, Any]:
        answer = self.twin.ask("run", self.path, "--approve", self.digests["command"], "--unattended")
        self.started(answer)
        return answer

    def started(self, answer: Mapping[str, Any]) -> None:
        """Take note of a run that was started, by the twin or by a launcher that stays."""
        assert answer["via"] in ("cli", "screen")
        self.run_answer = dict(answer)
        record = json.loads((self.run_folder / "run.json").read_text())
        assert record["process"]["pid"] == self.pid
        assert record["commands"] == self.command_answer["commands"], "exactly what was shown is what runs"
        self.valid(*ARTIFACTS)

    def calibrating(self) -> dict[str, Any]:
        """Wait until the tree says that activations are being calibrated."""
        return self.twin.wait(
            self.path, lambda answer: task(answer, "quantize", "calibrate")["state"] == "active", "calibrate is active"
        )

    def status(self, exit: int = 0) -> dict[str, Any]:
        answer = self.twin.ask("status", self.path, exit=exit)
        assert (answer["scope"], answer["kind"], answer["path"]) == ("job", "ptq", self.path)
        return answer

    def verify(self, exit: int = 0) -> dict[str, Any]:
        answer = self.twin.ask("verify", self.path, exit=exit)
        assert answer["against"] == "plan"
        self.valid(*ARTIFACTS)
        self.digests["result"] = answer["digest"]
        return answer

    def accept(self) -> dict[str, Any]:
        answer = self.twin.ask("accept", self.path, "--digest", self.digests["result"])
        assert answer["via"] == "cli" and answer["accepted_at"].endswith("Z")
        self.valid(*ARTIFACTS)
        return answer

    def artifact(self, name: str) -> dict[str, Any]:
        text = (Path(self.path) / name).read_text(encoding="utf-8")
        return dict(yaml.safe_load(text) if name.endswith(".yaml") else json.loads(text))

    def valid(self, *names: str) -> None:
        """These artifacts are there and the published contracts accept them."""
        for name in names:
            self.contracts.check(name, self.artifact(name))

    def quark_processes(self) -> list[int]:
        """Pids of living ``quark-cli`` commands that write to this job's output; their helpers are not counted."""
        return quark_processes(str(self.output))

    def runs(self) -> list[str]:
        return sorted(entry.name for entry in (Path(self.path) / ".quark-tui/runs").iterdir())

    def gone(self) -> None:
        """Wait until no process of this job's command is left."""
        until(lambda: not self.quark_processes(), "the command has ended", 120)


def quark_processes(output: str) -> list[int]:
    """Pids of living commands whose ``--output_dir`` is ``output``, of whatever parent."""
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        argv = process.command_line(int(entry.name)) or []
        fields = process.stat_fields(int(entry.name))
        if (
            "--output_dir" in argv
            and argv[argv.index("--output_dir") + 1] == output
            and fields
            and fields[0] not in "ZX"
        ):
            found[int(entry.name)] = int(fields[1])
    # A helper that was forked carries the same command line as its parent.
    return sorted(pid for pid, parent in found.items() if parent not in found)


def _sets(sets: Sequence[str]) -> list[str]:
    return [word for one in sets for word in ("--set", one)]


def folder_contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Relative path → (size, sha256) of every file below ``folder``."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
