"""Where a PTQ job stands: the model, the installed Quark, the machine and the wishes, brought together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quark_tui.core.answer import WrongQuestion
from quark_tui.core.digest import digest
from quark_tui.core.finding import Finding, block
from quark_tui.core.job import Job
from quark_tui.core.model.analysis import analysis_json
from quark_tui.core.model.intake import Intake, TemplateFacts, corrected, examine
from quark_tui.core.ptq import plan as planning
from quark_tui.core.ptq import wishes as wishing
from quark_tui.core.ptq.catalog import Catalog
from quark_tui.core.ptq.patterns import Names
from quark_tui.core.ptq.plan import PlanView
from quark_tui.core.ptq.surroundings import Surroundings
from quark_tui.core.text import clean
from quark_tui.engine.hint import hint
from quark_tui.engine.locate import Unreadable, unreadable_job
from quark_tui.io import artifacts, gpus, jobs
from quark_tui.io.catalog import read_catalog
from quark_tui.io.intake import read_model
from quark_tui.io.runs.reading import RunState, read_run
from quark_tui.io.surroundings import look_around
from quark_tui.io.target import Target, TargetProblem, find_interpreter, probe


@dataclass(frozen=True, slots=True)
class Asked:
    """The target interpreter's answer, or why there is none; ``catalog`` is what its Quark offers."""

    target: Target | None
    catalog: Catalog | None
    problem: Finding | None

    @property
    def quark_version(self) -> str | None:
        package = self.target.packages.get("amd-quark") if self.target else None
        return package.version if package else None

    @property
    def transformers_version(self) -> str | None:
        package = self.target.packages.get("transformers") if self.target else None
        return package.version if package else None


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that Checkpoints 1 to 3 of a job rest on, as it is now."""

    path: str
    job: Job
    asked: Asked
    seen: Mapping[str, Any]
    intake: Intake
    analysis: dict[str, Any] | None
    analysis_digest: str
    analysis_confirmed: bool
    wishes: wishing.Wishes
    around: Surroundings
    view: PlanView
    names: Names

    @property
    def plan_digest(self) -> str | None:
        return planning.plan_digest(self.view.plan) if self.view.plan is not None else None

    @property
    def plan_confirmed(self) -> bool:
        given = self.job.confirmations.get("plan")
        return self.analysis_confirmed and given is not None and given.digest == self.plan_digest

    def file(self, name: str) -> str:
        return f"{self.path}/{name}"

    def wishing(self, wishes: wishing.Wishes, environ: Mapping[str, str]) -> Situation:
        """The same job with other wishes."""
        job = replace(self.job, wishes=wishing.to_json(wishes))
        around, view = _planned(
            self.path, job, wishes, self.asked, self.seen, self.analysis, self.intake, self.names, environ
        )
        return replace(self, job=job, wishes=wishes, around=around, view=view)


def ask(python: str | None, environ: Mapping[str, str]) -> Asked:
    """Probe the target interpreter (None: the active one) and read its Quark's catalogue; never raises."""
    try:
        target = probe(python if python is not None else find_interpreter(environ)[0], environ)
    except TargetProblem as problem:
        finding = block(
            "interpreter_unusable",
            problem.message,
            problem.evidence,
            "name the interpreter of the environment that has amd-quark: --python PATH",
        )
        return Asked(None, None, finding)
    quark = target.packages.get("amd-quark")
    catalog = (
        read_catalog(Path(target.quark_root), (quark.version if quark else None) or "") if target.quark_root else None
    )
    return Asked(target, catalog, None)


def take_in(model: str, asked: Asked, corrections: Mapping[str, Any]) -> Intake:
    """Read and examine the model at ``model``. Raises WrongQuestion when it is no model directory."""
    source = read_model(Path(model))
    arguments = (asked.transformers_version, asked.quark_version)
    intake = examine(source, None, asked.catalog is not None, *arguments)
    if corrections:
        intake = corrected(intake, corrections)
    template = _template(asked.catalog, intake.facts["model_type"].value)
    if template is None:
        return intake
    intake = examine(source, template, True, *arguments)
    return corrected(intake, corrections, template) if corrections else intake


def _template(catalog: Catalog | None, model_type: Any) -> TemplateFacts | None:
    template = catalog.templates.get(model_type) if catalog and isinstance(model_type, str) else None
    if template is None or catalog is None:
        return None
    source = f"{clean(model_type)} template of the installed Quark {clean(catalog.quark_version)}, read from its source"
    return TemplateFacts(template.model_type, template.exclude, template.kv_layers, source)


def analysis_digest(analysis: Mapping[str, Any] | None, intake: Intake) -> str:
    """What Checkpoint 1 confirms; where no analysis can be written yet, the facts and questions that there are."""
    if analysis is not None:
        return digest("model_analysis", analysis)
    facts = {name: [fact.value, fact.source] for name, fact in intake.facts.items()}
    return digest("model_questions", {"facts": facts, "questions": list(intake.questions)})


def gather(path: str, job: Job, environ: Mapping[str, str]) -> Situation:
    """Raises WrongQuestion for a job of another workflow, Unreadable when its model directory cannot be read."""
    if job.workflow != "ptq" or job.model is None:
        raise WrongQuestion(f"quark-tui: {clean(path)} is a job of the workflow {job.workflow}, which has no plan here")
    asked = ask(job.python, environ)
    try:
        intake = take_in(job.model, asked, job.corrections)
    except WrongQuestion as problem:
        advice = "put the model back as it was, or make a job on another one with quark-tui new"
        raise Unreadable("model_unreadable", str(problem), advice) from None
    analysis = analysis_json(intake)
    fingerprint = analysis_digest(analysis, intake)
    given = job.confirmations.get("analysis")
    seen = gpus.look(environ)
    names = Names.of(intake.inventory)
    try:
        wishes = wishing.from_json(job.wishes)
    except WrongQuestion as problem:
        raise unreadable_job(f"{clean(jobs.job_file(path))}: {problem}") from None
    around, view = _planned(path, job, wishes, asked, seen, analysis, intake, names, environ)
    return Situation(
        path=path,
        job=job,
        asked=asked,
        seen=seen,
        intake=intake,
        analysis=analysis,
        analysis_digest=fingerprint,
        analysis_confirmed=analysis is not None and given is not None and given.digest == fingerprint,
        wishes=wishes,
        around=around,
        view=view,
        names=names,
    )


def _planned(
    path: str,
    job: Job,
    wishes: wishing.Wishes,
    asked: Asked,
    seen: Mapping[str, Any],
    analysis: Mapping[str, Any] | None,
    intake: Intake,
    names: Names,
    environ: Mapping[str, str],
) -> tuple[Surroundings, PlanView]:
    output = planning.output_dir(wishes, job.output)
    around = look_around(asked.target, environ, job.model or "", output, planning.template_path(wishes), seen)
    view = planning.build(
        wishes,
        analysis or {},
        intake.inventory,
        asked.catalog,
        around,
        job.output,
        confirmed=False,
        # By its real path: the plan is the same through whatever link the job is looked at.
        analysis_ref=f"{os.path.realpath(path)}/model_analysis.json",
        names=names,
    )
    return around, view


def living_run(path: str) -> RunState | None:
    """The job's run that is alive, or that may be: nothing may change under it."""
    for folder in reversed(jobs.run_folders(path)):
        state = read_run(folder)
        if state.exit is None and state.liveness in ("alive", "unknown"):
            return state
    return None


def busy(state: RunState) -> Finding:
    """The run that keeps a job from being changed or started again."""
    if state.liveness == "unknown":
        message = f"whether run {clean(state.id)} of this job lives cannot be told from here"
        advice = "ask on its host; if that host or container is gone for good, make a new job for the same model"
        return block("already_running", message, state.liveness_evidence, advice)
    message = f"run {clean(state.id)} of this job is {state.liveness}"
    advice = f"watch it with {hint('status', state.folder, '--follow')}, or end it with {hint('stop', state.folder)}"
    return block("already_running", message, state.liveness_evidence, advice)


def held() -> Finding:
    """Another quark-tui holds the job's lock."""
    message = "another quark-tui is changing or starting this job"
    return block("already_running", message, "its lock is held", "look again in a moment")


def written_plan(situation: Situation) -> tuple[dict[str, Any] | None, str]:
    """(quant_plan.json as it lies on disk, what keeps it from being the confirmed one); the latter "" when it is."""
    given = situation.job.confirmations.get("plan")
    try:
        plan = artifacts.read(situation.file("quant_plan.json"))
    except FileNotFoundError:
        return None, "quant_plan.json is not there"
    except artifacts.ArtifactProblem as problem:
        return None, str(problem)
    if given is None:
        return plan, "Checkpoint 2 (the plan) has not been passed"
    if planning.plan_digest(plan) != given.digest or plan.get("requires_confirmation") is not False:
        return plan, "quant_plan.json is not what was confirmed: it was changed since"
    if situation.plan_digest != given.digest:
        return plan, "what the plan rests on changed since it was confirmed"
    return plan, ""


def written_analysis(situation: Situation) -> str:
    """What keeps model_analysis.json on disk from being the confirmed one; "" when it is."""
    if not situation.analysis_confirmed:
        return "Checkpoint 1 (the analysis) has not been passed, or the model changed since"
    try:
        analysis = artifacts.read(situation.file("model_analysis.json"))
    except FileNotFoundError:
        return "model_analysis.json is not there"
    except artifacts.ArtifactProblem as problem:
        return str(problem)
    if digest("model_analysis", analysis) != situation.analysis_digest:
        return "model_analysis.json is not what was confirmed: it was changed since"
    return ""


def remove(path: str) -> None:
    """Take away an artifact of ours that no longer holds; it is regenerated, never patched."""
    if os.path.lexists(path):
        os.unlink(path)
