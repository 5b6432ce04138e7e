"""What breaks if this is wrong: an approval is asked for a command that cannot run, or a sound one is held up."""

from __future__ import annotations

import contextlib
import copy
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quark_tui.core.environment.readiness import Needs, Row, readiness, state_of
from quark_tui.core.text import clean

_GB = 10**9
#: A plan that everything in :func:`_body` is enough for.
NEEDS = Needs("single", (1,), 2 * _GB, 10 * _GB, 30 * _GB, "pileval")


def _body() -> dict[str, Any]:
    """``env`` of a host where everything is as it should be and torch was asked."""
    packages = {"amd-quark": "0.13", "torch": "2.9.1", "transformers": "5.13", "datasets": "5.0", "accelerate": "1.9"}
    wanted = {"python": ">=3.11,<3.14", "transformers": ">5,<5.17", "torch": ">=2.2"}
    gpus = [
        {"index": index, "vendor": "amd", "memory_total": 192 * _GB, "memory_used": 100 * _GB} for index in range(2)
    ]
    return {
        "interpreter": {"executable": "/env/bin/python", "version": "3.12.4", "supported": True},
        "packages": {name: {"version": version, "location": "/env"} for name, version in packages.items()},
        "requirements": [{"name": n, "specifier": s, "satisfied": True, "from": "metadata"} for n, s in wanted.items()],
        "torch": {
            "version": "2.9.1+rocm7.2", "backend": "rocm", "gpu_available": True, "device_count": 2,
            "operation_ok": True, "operation_error": None,
        },
        "torch_runtime": {"imported": True},
        "gpus": gpus,
        "gpu_verdict": "gpus",
        "gpu_evidence": "kfd",
        "memory": {"total": 64 * _GB, "available": 50 * _GB},
        "env_vars": {"QUARK_BUILD_DISABLE_JIT_FALLBACK": None, "ROCR_VISIBLE_DEVICES": None},
        "masks": {"applied": [], "visible": [0, 1]},
        "tools": {"g++": "/usr/bin/g++", "ninja": "/usr/bin/ninja"},
        "target_tools": {"ninja": None},
        "build_locks": [],
        "built_extensions": [],
        "hub": {"offline": [], "endpoint": None, "cached_datasets": ["mit-han-lab/pile-val-backup"]},
        "quark_cli": "/env/bin/quark-cli",
        "sources": {"tools": "PATH"},
    }  # fmt: skip


def _row(name: str, body: dict[str, Any], needs: Needs | None = NEEDS) -> Row:
    return next(row for row in readiness(body, needs) if row.name == name)


def _changed(**parts: Any) -> dict[str, Any]:
    """The sound body with keys of its parts changed, or parts replaced."""
    body = _body()
    for name, part in parts.items():
        body[name] = {**body[name], **part} if isinstance(part, dict) else part
    return body


def test_where_everything_is_there_every_row_is_ready() -> None:
    """P-90: what step 3 wants confirmed is confirmed by rows, each with its value and where that was seen."""
    rows = readiness(_body(), NEEDS)
    assert [(row.name, row.state) for row in rows if row.state != "ready"] == []
    assert [row.name for row in rows] == [
        "interpreter", "Python", "amd-quark", "quark-cli", "torch", "torch build", "transformers", "datasets",
        "accelerate", "operation", "memory", "disk", "compiler", "ninja", "compiling on first use", "variables",
        "build locks", "calibration data",
    ]  # fmt: skip
    assert all(row.value and row.source and not row.next_step for row in rows)
    assert set(rows[0].to_json()) == {"name", "state", "value", "from", "next_step"}
    assert state_of(rows) == "ready"


_NO = "not ready"


@pytest.mark.parametrize(
    ("name", "parts", "state", "said"),
    [
        ("interpreter", {"interpreter": {"version": None, "executable": None}}, _NO, "none answers"),
        ("amd-quark", {"packages": {"amd-quark": None}}, _NO, "missing"),
        ("datasets", {"packages": {"datasets": None}}, _NO, "missing"),
        ("accelerate", {"packages": {"accelerate": None}}, _NO, "missing"),
        ("accelerate", {"packages": {"accelerate": {"version": None}}}, "unknown", "cannot be read"),
        ("transformers", {"requirements": []}, "unknown", "5.13"),
        ("quark-cli", {"quark_cli": None}, _NO, "missing"),
        ("torch", {"torch": {"version": None}, "packages": {"torch": None}}, _NO, "missing"),
        ("torch", {"torch_runtime": {"imported": False}, "torch": {"operation_error": "E: x"}}, _NO, "E: x"),
        ("torch build", {"torch": {"backend": "cpu"}}, _NO, "cpu, the GPUs are amd"),
        ("torch build", {"torch": {"backend": "cuda"}}, _NO, "cuda, the GPUs are amd"),
        ("torch build", {"gpu_verdict": "no_driver"}, "unknown", "not known"),
        ("torch build", {"gpu_verdict": "no_gpu", "gpus": []}, _NO, "there is none"),
        ("operation", {"torch": {"operation_ok": None}}, "unknown", "not tried"),
        ("operation", {"torch": {"operation_ok": False, "operation_error": "SIGSEGV"}}, _NO, "SIGSEGV"),
        ("operation", {"torch": {"gpu_available": False}}, _NO, "reaches no GPU"),
        ("compiler", {"tools": {"g++": None}}, _NO, "no g++"),
        ("compiler", {"tools": {"g++": None}, "built_extensions": ["/x.so"]}, "unknown", "compiled helper"),
        ("ninja", {"tools": {"ninja": None}}, _NO, "absent"),
        ("ninja", {"tools": {"ninja": None}, "target_tools": {"ninja": "/env/bin/ninja"}}, "ready", "/env/bin"),
        ("compiling on first use", {"env_vars": {"QUARK_BUILD_DISABLE_JIT_FALLBACK": "1"}}, _NO, "universal"),
        ("variables", {"masks": {"applied": ["A", "B"], "visible": []}, "env_vars": {"A": "1", "B": "1"}}, _NO, "none"),
        ("variables", {"masks": {"applied": ["A"], "visible": None}}, "unknown", "A="),
        ("variables", {"masks": {"applied": ["A"], "visible": [0]}}, _NO, "the plan wants 1"),
        ("calibration data", {"hub": {"cached_datasets": []}}, "unknown", "the Hub"),
        ("calibration data", {"hub": {"cached_datasets": [], "offline": ["HF_HUB_OFFLINE"]}}, _NO, "HF_HUB_OFFLINE"),
    ],
)
def test_what_is_wrong_is_a_row_with_its_next_step(name: str, parts: dict[str, Any], state: str, said: str) -> None:
    """P-90: a missing package or a mismatched PyTorch surfaces here, before the approval."""
    row = _row(name, _changed(**parts))
    assert (row.state, said in row.value) == (state, True), row
    assert row.next_step or state == "ready"


@pytest.mark.parametrize("name", ["Python", "torch", "transformers"])
@pytest.mark.parametrize(("satisfied", "state"), [(False, _NO), (None, "unknown")])
def test_a_version_is_judged_by_its_requirement_line(name: str, satisfied: bool | None, state: str) -> None:
    body = _body()
    for line in body["requirements"]:
        line["satisfied"] = satisfied
    assert _row(name, body).state == state
    assert _row("datasets", body).state == "ready"


def test_a_nested_mask_is_explained() -> None:
    """P-12: the second mask counts within the first."""
    body = _changed(masks={"applied": ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"], "visible": []})
    assert "counts within the first" in _row("variables", body).next_step
    body["masks"]["visible"] = [1]
    row = _row("variables", body)
    assert row.state == "ready" and "counts within the first" in row.value


@pytest.mark.parametrize(
    ("owner", "blocks", "state", "said"),
    [
        ({"state": "alive", "pids": [7]}, True, _NO, "held by pid 7"),
        ({"state": "stale", "pids": []}, True, _NO, "left by a build that ended"),
        ({"state": "unknown"}, True, "unknown", "owner is unknown"),
        ({"state": "stale"}, None, "unknown", "left"),
        ({"state": "stale"}, False, "ready", "none"),
    ],
)
def test_a_build_lock_is_judged_by_its_owner(owner: dict[str, Any], blocks: bool | None, state: str, said: str) -> None:
    lock = {"path": "/x/lock", "age_seconds": 7200.0, "blocks": blocks, "owner": owner}
    row = _row("build locks", _changed(build_locks=[lock]))
    assert (row.state, said in row.value) == (state, True), row


def test_memory_is_that_of_the_devices_that_the_plan_names() -> None:
    """P-06, P-10: free memory against the estimate, on the chosen devices; one unknown makes all unknown."""
    body = _body()
    body["gpus"][1]["memory_used"] = 170 * _GB
    assert _row("memory", body).state == _NO
    assert _row("memory", body, Needs("multi_device", (0, 1), memory_bytes=100 * _GB)).state == "ready"
    body["gpus"][0]["memory_used"] = None
    assert _row("memory", body, Needs("multi_device", (0, 1), memory_bytes=100 * _GB)).state == "unknown"
    assert _row("memory", body, Needs("single", (5,), memory_bytes=1)).state == "unknown"
    assert _row("memory", body, Needs("cpu", memory_bytes=49 * _GB)).state == "ready"
    assert _row("memory", body, Needs("cpu", memory_bytes=51 * _GB)).state == _NO


def test_disk_is_what_is_free_where_the_output_goes() -> None:
    for free, state in ((2 * _GB, _NO), (3 * _GB, "ready"), (None, "unknown")):
        assert _row("disk", _body(), Needs(free_bytes=free, output_bytes=2 * _GB)).state == state


def test_a_plan_for_the_cpu_asks_for_no_gpu() -> None:
    """P-19: what was chosen explicitly is judged by what it needs."""
    body = _changed(torch={"backend": "cpu", "gpu_available": False}, gpus=[], gpu_verdict="no_gpu")
    body["masks"] = {"applied": ["HIP_VISIBLE_DEVICES"], "visible": []}
    rows = readiness(body, Needs("cpu", (), 1, 2, 3, "pileval"))
    assert state_of(rows) == "ready", [row for row in rows if row.state != "ready"]


def test_without_a_plan_what_depends_on_it_is_unknown() -> None:
    rows = {row.name: row.state for row in readiness(_body())}
    assert {name for name, state in rows.items() if state != "ready"} == {"memory", "disk", "calibration data"}


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += _paths(inner, (*at, key))
    return found


def _forget(body: dict[str, Any], path: tuple[Any, ...]) -> None:
    inner: Any = body
    for key in path[:-1]:
        if isinstance(inner, dict) and key not in inner:
            return  # its part was forgotten already
        inner = inner[key]
    if isinstance(inner, dict) and path[-1] in inner:
        del inner[path[-1]]


_BROKEN = _changed(
    torch={"backend": "cpu", "operation_ok": False},
    packages={"datasets": None},
    tools={"g++": None},
    masks={"applied": ["A"], "visible": []},
    hub={"cached_datasets": [], "offline": ["HF_HUB_OFFLINE"]},
)


@given(st.sampled_from([_body(), _BROKEN]), st.data())
def test_forgetting_a_fact_makes_no_row_ready(whole: dict[str, Any], data: st.DataObject) -> None:
    """Unknown is never a yes: whatever is not known, no row becomes ready by it."""
    before = {row.name: row.state for row in readiness(whole, NEEDS)}
    body = copy.deepcopy(whole)
    for path in data.draw(st.lists(st.sampled_from(_paths(whole)), min_size=1, max_size=4)):
        _forget(body, path)
    for row in readiness(body, NEEDS):
        assert row.state != "ready" or before[row.name] == "ready", row
        assert row.state == "ready" or row.next_step, row


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300)
@given(st.data())
def test_any_body_gives_every_row_in_safe_words(data: st.DataObject) -> None:
    body: Any = _body()
    for path in data.draw(st.lists(st.sampled_from(_paths(body)), max_size=5)):
        with contextlib.suppress(LookupError, TypeError):  # another draw took away what this one is in
            reduce(lambda inner, key: inner[key], path[:-1], body)[path[-1]] = data.draw(_ANY)
    needs = data.draw(st.none() | st.builds(Needs, st.sampled_from([None, "cpu", "single"]), dataset=st.text()))
    rows = readiness(body, needs)
    assert len(rows) == 18
    for row in rows:
        assert row.state in ("ready", "not ready", "unknown")
        assert all(clean(text) == text for text in (row.value, row.source, row.next_step))


def test_a_list_of_odd_entries_is_not_an_empty_one() -> None:
    assert _row("build locks", _changed(build_locks=["?"])).state == "unknown"


def test_nothing_known_is_nothing_ready() -> None:
    rows = readiness({}, None)
    assert not [row for row in rows if row.state == "ready"]
    assert state_of(rows) == "not ready"
    assert state_of(()) == "unknown"
