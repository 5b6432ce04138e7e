"""Hand-made answers about runs that are over, and a stand-in for the engine behind the screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding, block
from quark_tui.core.ptq.follow_up import FollowUp
from quark_tui.ui.listing import Listing

JOB = "/jobs/demo"
OUTPUT = "/jobs/demo/out"
DIGEST = "6f2c91d0" * 8
HOSTILE = "[/x]\x1b]52;c;AA\x07[bold]\x00שלום\u202e[link='x']" + "w" * 300
STEPS = ("analysis", "plan", "command", "approval", "load", "quantize", "export", "verify", "accept")

_CHECKS = (
    ("weights_present", True, "1 weight file(s), 163 MB.", "model.safetensors"),
    ("index_matches", None, "One weight file needs no index.", ""),
    ("headers_sound", True, "482 tensors; every file is as long as its header says.", "model.safetensors"),
    ("config_present", True, "config.json was read; quantization method quark.", "quantization_config"),
    ("scheme_matches", True, "The tensors of 210 modules are those of fp8.", "types and shapes of weights and scales"),
    ("count_matches", True, "All 210 modules that should be quantized are, and no other.", "names from headers"),
    ("excludes_respected", True, "Excluded and not quantized: 1 module.", "lm_head"),
    ("scales_present", True, "Every scale that the scheme needs is there.", "names in the headers"),
    ("scales_calibrated", True, "210 scales were calibrated.", "none of the values is the initial 1.0"),
    ("kv_consistent", None, "The KV cache is not quantized.", ""),
    ("overrides_consistent", None, "There are no overrides.", ""),
    ("mtp_excluded", None, "The model has no layers that predict further tokens.", ""),
    ("tokenizer_present", True, "3 tokenizer file(s).", "tokenizer.json"),
    ("tokenizer_unchanged", False, "The tokenizer differs from the source's.", "padding: none → left; truncation: 64"),
    ("size_plausible", True, "The size is what the plan's estimate says.", "163 MB, 161 MB estimated"),
    ("metric_present", None, "No evaluation was asked for.", ""),
)
_TOKENIZER = Finding(
    "low", "tokenizer_unchanged", "The tokenizer differs from the source's.", "padding", "set them back for serving"
)


def verified(verdict: str = "verified", wrong: Sequence[str] = (), *found: Finding, **more: Any) -> Answer:
    """An answer of ``verify``; the checks ``wrong`` are false and their findings say what to do."""
    checks = [
        {"code": code, "ok": False, "message": f"{code} is not so.", "evidence": "seen: this; missing: that"}
        if code in wrong
        else {"code": code, "ok": ok, "message": message, "evidence": evidence}
        for code, ok, message, evidence in _CHECKS
    ]
    findings = [Finding("medium", code, f"{code} is not so.", "seen", "export again") for code in wrong]
    body = {
        "verdict": verdict,
        "against": "plan",
        "path": OUTPUT,
        "checks": checks,
        "files": [
            {"path": f"{OUTPUT}/config.json", "size": 2582},
            {"path": f"{OUTPUT}/model.safetensors", "size": 162_939_128},
            {"path": f"{OUTPUT}/tokenizer.json", "size": 3_523_484},
        ],
        "quantized_modules": 210,
        "expected_modules": 210,
        "digest": DIGEST,
        **more,
    }
    return Answer("verify", body, (*findings, _TOKENIZER, *found), 0 if verdict == "verified" else 1)


def status(verdict: str = "succeeded", *found: Finding, **more: Any) -> Answer:
    """An answer of ``status`` of a job whose run ended with 0."""
    accepted = more.get("accepted") is not None
    body = {
        "kind": "ptq",
        "scope": "job",
        "path": JOB,
        "liveness": "finished",
        "liveness_evidence": "exit.json, recorded by the supervisor",
        "verdict": verdict,
        "stage": "accept",
        "fresh_seconds": None,
        "numbers": {
            "exit_status": number(0),
            "peak_memory_bytes": number(1_410_000_000),
            "elapsed_seconds": number(62.4),
        },
        "tasks": [task(key, "pending" if key == "accept" and not accepted else "done") for key in STEPS],
        "failure": None,
        "accepted": None,
        "checkpoints": {"analysis": True, "plan": True},
        **more,
    }
    return Answer("status", body, tuple(found), 0)


def number(value: Any, source: str = "exit.json", authoritative: bool = True) -> dict[str, Any]:
    return {"value": value, "from": source, "authoritative": authoritative}


def task(key: str, state: str) -> dict[str, Any]:
    return {"key": key, "title": key, "state": state, "progress": None, "children": []}


def failure(**more: Any) -> dict[str, Any]:
    """A run that ran out of memory, as ``status`` keeps it."""
    return {
        "kind": "memory",
        "code": "gpu_out_of_memory",
        "message": "A GPU ran out of memory while calibrating.",
        "evidence": ["torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB", "exit status 1"],
        "whole_error": "Traceback (most recent call last):\n  File x\ntorch.OutOfMemoryError: HIP out of memory.",
        "next_step": "Halve the batch size: 8 → 4.",
        "checkpoint": 2,
        "command": ["quark-cli", "torch-llm-ptq"],
        "status": 1,
        "signal": None,
        "versions": {"amd-quark": "0.12"},
        "resources": {"peak_memory_bytes": 1_410_000_000, "oom_kill": None},
        "left_behind": [],
        **more,
    }


def failed() -> tuple[Answer, Answer]:
    """(status, verify) of a run that failed and left nothing."""
    numbers = {"exit_status": number(1), "peak_memory_bytes": number(1_410_000_000), "elapsed_seconds": number(62.4)}
    found = Finding("high", "failure_memory", "A GPU ran out of memory while calibrating.", "exit status 1", "less")
    output = verified(
        "failed", ("weights_present", "config_present"), files=[], quantized_modules=None, expected_modules=210
    )
    return status("failed", found, failure=failure(), numbers=numbers), output


def accepted(digest: str = DIGEST) -> dict[str, Any]:
    return {"digest": digest, "confirmed_at": "2026-01-02T03:04:05Z", "via": "screen"}


def follow_ups(legal: bool = True, reason: str = "") -> tuple[FollowUp, ...]:
    """Two choices, the recommended one first."""
    changes = (("batch_size", "4"), ("output_dir", "/jobs/demo/out-2"))
    return (
        FollowUp("smaller_batch", "halve the batch size: 8 → 4", "plan", "Halve it.", changes, legal, reason),
        FollowUp("run_again", "run the same plan again", "command", "the same plan", (), legal, reason),
        FollowUp("correct_analysis", "correct a fact of the analysis", "analysis", "", (), legal, reason),
    )


def refused(command: str, code: str = "digest_differs", **body: Any) -> Answer:
    return Answer(command, body, (block(code, "the result is not what this digest stands for", "a → b", "look"),), 1)


class Fake:
    """Answers from values; ``calls`` are the changes that were asked for. A value that is an exception is raised, one
    that can be called is called, of a list each is given once and the last one again."""

    def __init__(self, **answers: Any) -> None:
        self._answers = {
            "listing": Listing(),
            "truths": WrongQuestion("quark-tui: no job is here"),
            "status": status(),
            "verify": verified(),
            "interpreter": "/env/bin/python (by PATH)",
            **answers,
        }
        self.calls: list[tuple[str, ...]] = []

    def _answer(self, name: str, *arguments: str) -> Any:
        value = self._answers[name]
        if isinstance(value, list):
            value = value.pop(0) if len(value) > 1 else value[0]
        if isinstance(value, BaseException):
            raise value
        return value(*arguments) if callable(value) else value

    def listing(self) -> Listing:
        return self._answer("listing")  # type: ignore[no-any-return]

    def what(self, path: str) -> str:
        return "folder"

    def truths(self, path: str) -> dict[str, Any]:
        return self._answer("truths", path)  # type: ignore[no-any-return]

    def status(self, path: str) -> Answer:
        return self._answer("status", path)  # type: ignore[no-any-return]

    def verify(self, path: str) -> Answer:
        return self._answer("verify")  # type: ignore[no-any-return]

    def follow_ups(self, job: str) -> Sequence[FollowUp]:
        return self._answer("follow_ups")  # type: ignore[no-any-return]

    def interpreter(self) -> str:
        return self._answer("interpreter")  # type: ignore[no-any-return]

    def accept(self, job: str, digest: str) -> Answer:
        return self._change("accept", job, digest)

    def begin(self, job: str, code: str) -> Answer:
        return self._change("begin", job, code)

    def new(self, directory: str, model: str) -> Answer:
        return self._change("new", directory, model)

    def _change(self, name: str, *arguments: str) -> Answer:
        self.calls.append((name, *arguments))
        return self._answer(name, *arguments)  # type: ignore[no-any-return]


async def until(pilot: Any, condition: Callable[[], object], what: str) -> None:
    """Turn the event loop until ``condition`` holds; bounded by the number of turns, not by time."""
    for _ in range(2_000):
        if condition():
            return
        await pilot.pause()
    raise AssertionError(f"waited in vain: {what}")


def box(app: Any, frame: str) -> str:
    """The lines of ``frame`` that the box of the modal takes, without what is behind it."""
    region = app.screen.query_one("#box").region
    lines = [line.ljust(region.right)[region.x : region.right] for line in frame.splitlines()]
    return "\n".join(line.rstrip() for line in lines[region.y : region.bottom]) + "\n"
