"""What of the model itself stands against a plan: unknown type, no template, already quantized, code of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quark_tui.core.ptq.analysis import fact, quantized_already
from quark_tui.core.ptq.checks.draft import Draft, Issue, issue, meant, shown


def check_model(draft: Draft) -> Iterator[Issue]:
    """model_type_unknown, template_missing, and the gpt_oss trap."""
    path = draft.values["template_file"]
    about = frozenset({"template_file"})
    if draft.model_type is None:
        yield issue(
            "block",
            "model_type_unknown",
            "model",
            "the model type is not known, so no template can be chosen",
            "the confirmed analysis has no model.model_type",
            "state model_type when the analysis is confirmed",
        )
        return
    kind = shown(draft.model_type)
    if path is not None:
        given = draft.around.template_file
        if not path.startswith("/"):
            yield issue(
                "block",
                "path_not_absolute",
                about,
                f"template_file is not absolute: {shown(path)}",
                "quark-cli changes its working directory before it reads files",
                "give the whole path",
            )
        elif draft.catalog.options and "--template_file" not in draft.catalog.options:
            yield issue(
                "block",
                "template_missing",
                about,
                "the installed quark-cli has no --template_file",
                draft.quark,
                "clear template_file, or install an amd-quark that has the option (0.13 does)",
            )
        elif given is None or given.problem:
            why = given.problem if given is not None else "it was not looked at"
            yield issue(
                "block",
                "template_missing",
                about,
                f"the template file cannot be used: {shown(why, 300)}",
                shown(path, 300),
                "correct the file, or clear template_file",
            )
        elif given.model_type != draft.model_type:
            yield issue(
                "block",
                "template_missing",
                about,
                f"the template file is for {shown(given.model_type)}, the model is {kind}",
                shown(path, 300),
                "quark-cli refuses a template of another model type: correct model_type in the file",
            )
    elif draft.model_type not in draft.catalog.templates:
        has_option = "--template_file" in draft.catalog.options
        yield issue(
            "block",
            "template_missing",
            "template_file",
            f"the installed Quark has no template for model type {kind}"
            + meant(draft.model_type, draft.catalog.templates),
            f"{draft.quark}: {len(draft.catalog.templates)} templates",
            "give a template file (template_file)" if has_option else "another amd-quark may have one",
        )
    method = fact(draft.analysis, "already_quantized")
    if method is not None and draft.model_type != "gpt_oss":
        name = method.get("method") if isinstance(method, Mapping) else method
        yield issue(
            "high",
            "source_quantized",
            "model",
            f"the source is quantized already ({shown(name)})",
            "run with 0.13: quantizing a Quark export again fails when it is written",
            "start from the unquantized model",
        )
    if draft.model_type == "gpt_oss" and not quantized_already(draft.analysis):
        yield issue(
            "high",
            "gpt_oss_bf16",
            "exclude_layers",
            "a bf16 gpt_oss checkpoint without its original quantization_config: Quark takes lm_head, routers and "
            "attention for de-quantized MXFP4 layers and quantizes them in spite of every exclude",
            "run with 0.13; the original checkpoint carries quantization_config.modules_to_not_convert",
            "start from the original checkpoint, or check the output's excludes",
        )


def check_remote_code(draft: Draft) -> Iterator[Issue]:
    """What the trust_remote_code row does and does not stop."""
    if draft.values["trust_remote_code"]:
        yield issue(
            "high",
            "remote_code_trusted",
            "trust_remote_code",
            "code that the model brings along will be executed without a prompt",
            "quark-cli trusts remote code unless --no_trust_remote_code is given",
            "set trust_remote_code to false unless the model needs its own code and you have read it",
        )
        return
    entries = fact(draft.analysis, "remote_code")
    loose = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, Mapping) and entry.get("stopped_by_flag") is False
    ]
    if loose:
        yield issue(
            "high",
            "remote_code_not_stopped",
            "trust_remote_code",
            f"trust_remote_code false does not stop the code that {shown(loose[0].get('file'))} names: "
            f"{shown(loose[0].get('target'))}",
            "run with 0.13: the flag covers the model, not its tokenizer and processor",
            "read the code, or use a copy of the model without it",
        )
