"""Weights, index, headers and configuration: are they there, and can they be believed?"""

from __future__ import annotations

import re

from quark_tui.core.ptq.verify.case import Case
from quark_tui.core.ptq.verify.checks.check import BLIND, Check, some_names
from quark_tui.core.text import clean, human_bytes

_PART = re.compile(r"(?s)(.*)-(\d{1,9})-of-(\d{1,9})\.safetensors\Z")


def _lost_shards(case: Case) -> list[str]:
    """Weight files that the index, or the numbering of those that are there, promises."""
    present = {shard.name for shard in case.export.checkpoint.shards}
    if "model.safetensors" in present:  # loaded alone, whatever an index beside it says
        return []
    lost = set((case.export.checkpoint.index or {}).values()) - present
    for name in present:
        match = _PART.match(name)
        if match and int(match[3]) <= 100_000:
            width = len(match[2])
            whole = (
                f"{match[1]}-{number:0{width}d}-of-{match[3]}.safetensors" for number in range(1, int(match[3]) + 1)
            )
            missing = [part for part in whole if part not in present]
            lost.update(missing)
            break
    return sorted(lost)


def weights_present(case: Case) -> Check:
    code, shards = "weights_present", case.export.checkpoint.shards
    if case.export.refused:
        return Check(
            code, None, "The folder could not be looked into.", case.export.problem, undecided=True, weight="fatal"
        )
    lost = _lost_shards(case)
    if shards and not lost:
        size = sum(shard.size for shard in shards)
        return Check(
            code,
            True,
            f"{len(shards)} weight file(s), {human_bytes(size)}.",
            some_names(s.name for s in shards),
            weight="fatal",
        )
    if lost:
        return Check(
            code,
            False,
            f"{len(lost)} weight file(s) that are promised are not there.",
            some_names(lost),
            "Look into the log for what ended the export; run it again into an empty folder.",
            "fatal",
        )
    other = case.export.checkpoint.other_weights
    if other and case.expectation.against == "config":
        return Check(
            code,
            None,
            "The weights are in a format without readable headers.",
            some_names(other),
            "Verify a safetensors export.",
            "fatal",
            True,
        )
    return Check(
        code,
        False,
        case.export.problem or "There is no safetensors file.",
        some_names(name for name, _ in case.export.files),
        "Look into the log for what ended the export: weights are written last.",
        "fatal",
    )


def index_matches(case: Case) -> Check:
    code, checkpoint = "index_matches", case.export.checkpoint
    if not checkpoint.shards:
        return Check(code, None, "There are no weight files that an index could name.")
    if case.export.unreadable:
        return Check(code, None, BLIND, some_names(case.export.unreadable), undecided=True)
    found = [clean(text)[:300] for text in checkpoint.index_disagreements()]
    owners: dict[str, str] = {}
    twice = [
        name
        for shard in checkpoint.shards
        for name in shard.tensors
        if owners.setdefault(name, shard.name) != shard.name
    ]
    if twice:
        found.append(f"{len(twice)} tensors are in more than one file, first {some_names(twice, 1)}")
    if checkpoint.index is None and not checkpoint.index_problem:
        if len(checkpoint.shards) > 1 and not any(shard.name == "model.safetensors" for shard in checkpoint.shards):
            found.append(f"{len(checkpoint.shards)} weight files without model.safetensors.index.json")
        if not found:
            return Check(code, None, "One weight file needs no index.")
    if found:
        return Check(
            code,
            False,
            "Index and weight files disagree.",
            "; ".join(found[:5]),
            "Export again into an empty folder: files of an earlier run may have stayed.",
        )
    return Check(
        code,
        True,
        f"The index and {len(checkpoint.shards)} weight file(s) agree.",
        f"{len(checkpoint.index or {})} tensors",
    )


def headers_sound(case: Case) -> Check:
    code, shards = "headers_sound", case.export.checkpoint.shards
    if not shards:
        return Check(code, None, "There is no header to read.", weight="fatal")
    bad = [
        f"{shard.name}: {shard.problem}"
        for shard in shards
        if shard.problem and shard.name not in case.export.unreadable
    ]
    if bad:
        return Check(
            code,
            False,
            f"{len(bad)} weight file(s) cannot be believed.",
            some_names((text[:300] for text in bad), 2),
            "Check free space and quota; export again.",
            "fatal",
        )
    if case.export.unreadable:
        return Check(
            code,
            None,
            BLIND,
            some_names(case.export.unreadable),
            "Run as the user who owns the files, or have them made readable.",
            "fatal",
            True,
        )
    if not case.tensors:
        return Check(
            code,
            False,
            "The weight files hold no tensor.",
            some_names(s.name for s in shards),
            "Export again.",
            "fatal",
        )
    return Check(code, True, f"{len(case.tensors)} tensors; every file is as long as its header says.", weight="fatal")


def config_present(case: Case) -> Check:
    code, document = "config_present", case.export.config
    where = "config.json"
    if case.export.refused or document.unreadable:
        return Check(
            code,
            None,
            "config.json could not be read.",
            document.problem or case.export.problem,
            undecided=True,
            weight="fatal",
        )
    if not document.present:
        return Check(
            code, False, "There is no config.json.", where, "Look into the log for what ended the export.", "fatal"
        )
    if document.problem:
        return Check(
            code, False, "config.json cannot be used.", clean(document.problem)[:300], "Export again.", "fatal"
        )
    if case.config.problems:
        return Check(
            code,
            False,
            "quantization_config cannot be understood.",
            some_names(case.config.problems),
            "Export again; never mend it by hand.",
            "fatal",
        )
    if case.config.method is None:
        return Check(code, True, "config.json was read; it names no quantization.", where, weight="fatal")
    version = f", version {clean(case.config.version)[:40]}" if case.config.version else ""
    method = clean(case.config.method)[:60]
    return Check(
        code, True, f"config.json was read; quantization method {method}{version}.", case.config.where, weight="fatal"
    )
