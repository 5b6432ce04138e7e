"""What is wrong with the output folder of a plan."""

from __future__ import annotations

from collections.abc import Iterator

from quark_tui.core.ptq.checks import Draft, Issue, issue, shown
from quark_tui.core.text import human_bytes


def inside(path: str, folder: str) -> bool:
    """True when absolute ``path`` is ``folder`` or lies below it; both are taken as they are written."""
    folder = folder.rstrip("/")
    return bool(folder) and (path.rstrip("/") == folder or path.startswith(folder + "/"))


def check_output(draft: Draft, output_bytes: int | None) -> Iterator[Issue]:
    """path_not_absolute, output_is_model, output_in_prefix, output_not_empty, parent_not_writable, no_space."""
    path = draft.values["output_dir"]
    around = draft.around
    if not isinstance(path, str) or not path.startswith("/"):
        yield issue(
            "block",
            "path_not_absolute",
            "output_dir",
            f"the output folder is not absolute: {shown(path)}",
            "quark-cli changes its working directory into its own installation, and would write there",
            "give the whole path",
        )
        return
    state = around.output
    if state.path != path:
        yield issue(
            "medium", "output_not_looked_at", "output_dir", f"the output folder was not looked at: {shown(path)}"
        )
        return
    resolved = state.resolved or path
    model = around.model_resolved or around.model_dir
    if model and (resolved.rstrip("/") == model.rstrip("/") or path.rstrip("/") == around.model_dir.rstrip("/")):
        yield issue(
            "block",
            "output_is_model",
            "output_dir",
            "the output folder is the model itself: its weights would be replaced",
            f"{shown(path, 300)} is {shown(model, 300)}; quark-cli overwrites without asking",
            "choose another folder",
        )
        return
    if model and inside(resolved, model):
        yield issue(
            "medium",
            "output_inside_model",
            "output_dir",
            "the output folder lies inside the model's folder",
            shown(resolved, 300),
            "choose a folder outside it",
        )
    if around.prefix and inside(resolved, around.prefix):
        yield issue(
            "block",
            "output_in_prefix",
            "output_dir",
            "the output folder lies inside the Python environment",
            f"{shown(resolved, 300)} is below {shown(around.prefix, 300)}",
            "choose a folder outside it",
        )
    if state.exists and state.is_dir is False:
        yield issue(
            "block",
            "output_not_empty",
            "output_dir",
            "a file is where the output folder is to be",
            shown(path, 300),
            "choose another folder",
        )
    elif state.exists and state.empty is False:
        yield issue(
            "block",
            "output_not_empty",
            "output_dir",
            "the output folder is not empty",
            f"{shown(path, 300)}; quark-cli overwrites without asking and leaves stale files between the new ones",
            "choose a new or an empty folder: --set output_dir=/an/absolute/path",
        )
    elif state.exists and state.empty is None:
        yield issue(
            "medium",
            "output_unreadable",
            "output_dir",
            "whether the output folder is empty cannot be told",
            shown(path, 300),
        )
    if state.parent_writable is False:
        yield issue(
            "block",
            "parent_not_writable",
            "output_dir",
            "the output folder cannot be made or written"
            if not state.exists
            else "the output folder cannot be written",
            f"no permission at {shown(path, 300)}; quark-cli would find out after all the work",
            "choose a folder that you may write to",
        )
    if output_bytes is not None and around.free_bytes is not None and output_bytes > around.free_bytes:
        yield issue(
            "block",
            "no_space",
            ("output_dir", "global_scheme"),
            f"the output needs about {human_bytes(output_bytes)}, {human_bytes(around.free_bytes)} are free",
            f"free space at {shown(path, 300)}",
            "free some space, or choose another folder",
        )
