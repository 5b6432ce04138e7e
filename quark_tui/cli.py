"""The command line: the full-screen app by default, and its plain twin for scripts, screen readers and tests."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import quark_tui
from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import block
from quark_tui.core.text import clean, redact

_COMMANDS: dict[str, str] = {
    "env": "facts about the target interpreter and this machine",
    "model": "what a model's configuration and weight headers say",
    "new": "make a job",
    "plan": "show a job's plan, or change it",
    "confirm": "confirm a checkpoint by its digest",
    "command": "the exact command that would run, and its digest",
    "run": "approve one exact command by its digest and start it",
    "status": "the true state of a job or a run",
    "stop": "send a run a signal, deliberately",
    "verify": "check a quantized checkpoint directory by what is on disk",
    "accept": "accept a verified result by its digest",
    "sessions": "all known jobs and running quark processes",
    "paths": "where quark-tui keeps its own files",
    "doctor": "facts for a bug report",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongQuestion(f"{self.prog}: {message} (try {self.prog} --help)")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"KEY=VALUE is wanted, not {text!r}")
    return key, value


def _override(text: str) -> tuple[str, str]:
    pattern, equals, scheme = text.rpartition("=")
    if not equals or not pattern:
        raise argparse.ArgumentTypeError(f"PATTERN=SCHEME is wanted, not {text!r}")
    return pattern, scheme


def _app_options(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("options of the app")
    options.add_argument("--ascii", action="store_const", const="on", help="only ASCII is drawn")
    options.add_argument(
        "--no-mouse", dest="mouse", action="store_const", const=False, help="leave the mouse to the terminal"
    )
    options.add_argument("--color", choices=["auto", "true", "256", "16", "none"], help="colours that are sent")
    options.add_argument("--theme", metavar="NAME", help="quark-dark, quark-light, quark-ansi, or one of your own")


def _app_parser() -> argparse.ArgumentParser:
    """What opens the app: its options and a path."""
    parser = _Parser(prog="quark-tui", add_help=False, allow_abbrev=False)
    _app_options(parser)
    parser.add_argument("path", metavar="PATH", nargs="?")
    return parser


def _parser() -> argparse.ArgumentParser:
    """Every command; the app's options are here for their help."""
    parser = _Parser(
        prog="quark-tui",
        description="Quantize large language models with AMD Quark from a terminal. Without a command the app opens.",
        epilog="quark-tui [OPTIONS] [PATH] opens the app on a job, a run, a model directory or a folder of jobs.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"quark-tui {quark_tui.__version__}")
    _app_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    made: dict[str, argparse.ArgumentParser] = {}
    for name, help_text in _COMMANDS.items():
        made[name] = commands.add_parser(name, help=help_text, description=help_text, allow_abbrev=False)
        made[name].add_argument("--json", action="store_true", help="one JSON object on stdout")
    made["env"].add_argument("--python", metavar="P", help="the target interpreter")
    made["env"].add_argument("--torch", action="store_true", help="import its torch too, and try it on each device")
    made["model"].add_argument("source", metavar="SOURCE", help="a local model directory")
    made["model"].add_argument("--python", metavar="P", help="the target interpreter")
    new = made["new"]
    new.add_argument("directory", metavar="DIR")
    new.add_argument("--workflow", required=True, choices=["ptq", "install", "quant-perf"])
    new.add_argument("--model", metavar="M", help="a local model directory")
    new.add_argument("--output", metavar="O", help="where the quantized model goes (default: DIR/out)")
    new.add_argument("--python", metavar="P", help="the target interpreter")
    for name in ("plan", "confirm", "command", "run", "accept"):
        made[name].add_argument("job", metavar="JOB")
    made["confirm"].add_argument("checkpoint", choices=["analysis", "plan"])
    for name in ("new", "plan", "confirm"):
        what = (
            "correct a fact of the analysis" if name == "confirm" else "set a row of the plan; lists as JSON or commas"
        )
        made[name].add_argument(
            "--set",
            dest="sets",
            metavar="KEY=VALUE",
            type=_pair,
            action="append",
            default=[],
            help=f"{what} (repeatable)",
        )
    plan = made["plan"]
    many: dict[str, Any] = {"action": "append", "default": []}
    plan.add_argument(
        "--override",
        metavar="PATTERN=SCHEME",
        type=_override,
        help="another scheme for the modules that match; PATTERN= removes it (repeatable, the order decides)",
        **many,
    )
    plan.add_argument(
        "--exclude",
        metavar="PATTERN",
        help="add a pattern to the excluded modules; --set exclude_layers=template goes back to the template's own",
        **many,
    )
    plan.add_argument("--python", metavar="P", help="give the job another target interpreter; stands alone")
    plan.add_argument("--reason", metavar="KEY=TEXT", type=_pair, help="why a row has its value", **many)
    for name in ("confirm", "accept"):
        made[name].add_argument("--digest", required=True, metavar="D")
    made["run"].add_argument("--approve", required=True, metavar="DIGEST")
    made["run"].add_argument("--unattended", action="store_true", help="needed where no terminal is attached")
    for name in ("status", "stop", "verify"):
        made[name].add_argument("path", metavar="PATH")
    made["status"].add_argument("--follow", action="store_true", help="one line for every change until the end")
    made["stop"].add_argument("--signal", choices=["INT", "TERM", "KILL"], default="INT")
    made["stop"].add_argument("--yes", action="store_true", help="really send it")
    made["sessions"].add_argument("--root", metavar="DIR", action="append", default=[])
    return parser


def _env(arguments: argparse.Namespace) -> Answer:
    if arguments.torch:
        from quark_tui.engine.torch_runtime import environment_with_torch

        return environment_with_torch(arguments.python, os.environ)
    from quark_tui.engine.environment import environment

    return environment(arguments.python, os.environ)


def _model(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.model import model

    return model(arguments.source, arguments.python, os.environ)


def _new(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.new import new

    return new(
        arguments.directory,
        arguments.workflow,
        arguments.model,
        arguments.output,
        arguments.python,
        arguments.sets,
        os.environ,
    )


def _plan(arguments: argparse.Namespace) -> Answer:
    if arguments.python is not None:
        from quark_tui.engine.target_choice import retarget

        if arguments.sets or arguments.override or arguments.exclude or arguments.reason:
            raise WrongQuestion("quark-tui plan: --python stands alone: what may be set depends on that interpreter")
        return retarget(arguments.job, arguments.python, os.environ)
    from quark_tui.engine.plan import plan

    return plan(arguments.job, arguments.sets, arguments.override, arguments.exclude, arguments.reason, os.environ)


def _confirm(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.confirm import confirm

    return confirm(arguments.job, arguments.checkpoint, arguments.digest, arguments.sets, "cli", os.environ)


def _command(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.command import command

    return command(arguments.job, os.environ)


def _run(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.run import run

    if not arguments.unattended and not sys.stdin.isatty():
        raise WrongQuestion("quark-tui run: without a terminal it needs --unattended")
    return run(arguments.job, arguments.approve, "cli", arguments.unattended, os.environ)


def _status(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine import status

    if arguments.follow:
        last: Answer | None = None
        shown = ""
        for last in status.follow(arguments.path):
            if arguments.json:
                _print(last, True, compact=True)
            else:
                shown = _follow_line(last, shown)
        assert last is not None
        if not arguments.json:
            _print(last, False)
        return Answer("", {}, exit=last.exit)
    return status.status(arguments.path)


def _follow_line(answer: Answer, shown: str) -> str:
    """One line for a change that a person would see; the whole tree comes at the end."""
    from quark_tui.plain import progress

    line = progress(answer.body)
    if line != shown:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return line


def _stop(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.stop import stop

    return stop(arguments.path, arguments.signal, arguments.yes)


def _verify(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.verdict import verify

    return verify(arguments.path, os.environ)


def _accept(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.verdict import accept

    return accept(arguments.job, arguments.digest, "cli", os.environ)


def _sessions(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.sessions import sessions

    return sessions(arguments.root)


def _paths(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.about import paths

    return paths()


def _doctor(arguments: argparse.Namespace) -> Answer:
    from quark_tui.engine.about import doctor

    return doctor(os.environ)


_ANSWERS: dict[str, Callable[[argparse.Namespace], Answer]] = {
    "env": _env,
    "model": _model,
    "new": _new,
    "plan": _plan,
    "confirm": _confirm,
    "command": _command,
    "run": _run,
    "status": _status,
    "stop": _stop,
    "verify": _verify,
    "accept": _accept,
    "sessions": _sessions,
    "paths": _paths,
    "doctor": _doctor,
}


def _print(answer: Answer, as_json: bool, compact: bool = False) -> None:
    if not answer.command:
        return
    if as_json:
        separators = (",", ":") if compact else None
        text = json.dumps(answer.to_json(), indent=None if compact else 2, separators=separators, allow_nan=False)
    else:
        from quark_tui.plain import render

        text = render(answer)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is that of contracts.md."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a glyph gets its escape instead of an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        return _main(words)
    except WrongQuestion as error:
        sys.stderr.write(f"{redact(clean(error))}\n")
        return 2
    except BrokenPipeError:
        # The reader left (head, a closed pager): nothing more to say, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _failed(error, words)


def _open_streams() -> None:
    """A stream that the caller closed becomes /dev/null: nothing that is opened later may take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))


def _failed(error: Exception, words: Sequence[str]) -> int:
    """A sentence on stderr for what no use case could answer, and with --json the envelope with it as a finding."""
    sentence = _sentence(error)
    if "--json" in words and words[0] in _COMMANDS:
        finding = block("not_done", redact(clean(sentence))[:500], "", "see to the cause, then ask again")
        with contextlib.suppress(OSError):
            _print(Answer(words[0], {}, (finding,), 1), True)
    return _say(sentence)


def _sentence(error: Exception) -> str:
    from quark_tui.io.artifacts import ArtifactProblem
    from quark_tui.io.jobs import JobBusy

    if isinstance(error, JobBusy):
        return f"another quark-tui is changing or starting {error}; look again in a moment"
    if isinstance(error, ArtifactProblem):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return _unexpected(error)


def _say(sentence: str) -> int:
    sys.stderr.write(f"quark-tui: {redact(clean(sentence))[:500]}\n")
    return 1


def _unexpected(error: Exception) -> str:
    """A defect of ours: a person gets a sentence, the traceback goes to a file that only she can read."""
    import traceback

    from quark_tui.io.atomic import write_bytes
    from quark_tui.io.paths import state_folder

    where = "it could not be written down"
    try:
        folder = state_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = str(folder / "last-error.txt")
        write_bytes(path, redact("".join(traceback.format_exception(error))).encode("utf-8", "backslashreplace"))
        where = f"details are in {path}"
    except OSError:
        pass
    return f"unexpected {type(error).__name__}: {error}; {where}"


def _main(words: list[str]) -> int:
    first = words[0] if words else ""
    asks_help = first.startswith("-") and not {"-h", "--help", "--version"}.isdisjoint(words)
    if first not in _COMMANDS and not asks_help:
        return _open(words)
    arguments = _parser().parse_args(words)
    answer = _ANSWERS[arguments.command](arguments)
    _print(answer, arguments.json)
    return answer.exit


def _open(words: list[str]) -> int:
    from quark_tui.io.paths import absolute

    arguments, more = _app_parser().parse_known_args(words)
    named: str | None = arguments.path
    if named in _COMMANDS:
        raise WrongQuestion(f"quark-tui: {named} is a command, it stands first; ./{named} opens what is called so")
    if more and (unknown := [word for word in more if word.startswith("-")]) and (not named or os.path.exists(named)):
        raise WrongQuestion(f"quark-tui: unrecognized arguments: {' '.join(unknown)} (try quark-tui --help)")
    if more:
        raise WrongQuestion(f"quark-tui: no command {named!r} (try quark-tui --help)")
    target: str | None = None
    if named is not None:
        target = absolute(named)
        if not os.path.exists(target):
            raise WrongQuestion(f"quark-tui: {target}: no such path, and no command (try quark-tui --help)")
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "") in ("", "dumb"):
        raise WrongQuestion("quark-tui: the app needs a terminal; every screen has a plain twin: quark-tui --help")
    from quark_tui.io import settings
    from quark_tui.ui import terminal

    inherited = dict(os.environ)  # what runs inherit: taken before this process sets anything for itself
    options = settings.Options(arguments.theme, arguments.ascii, arguments.color, arguments.mouse)
    chosen, findings = settings.load(options, inherited)
    found = terminal.terminal(inherited, chosen.ascii, chosen.color, chosen.mouse)
    terminal.apply(found, os.environ)
    from quark_tui.ui.app import run_app

    return run_app(target, inherited, settings=chosen, terminal=found, findings=findings)
