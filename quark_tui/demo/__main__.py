"""``python -m quark_tui.demo``: make the demonstration environment, open a job in it, or say where it is."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from quark_tui.demo.opening import open_it
from quark_tui.demo.setup import DISK_NEEDED, SetupProblem, missing, prepare, settings


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m quark_tui.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="make what is missing; a second call finds everything")
    commands.add_parser("settings", help="print paths and variables as JSON; exit 1 when a part is missing")
    opened = commands.add_parser("open", help="make what is missing, then open the app on the demonstration job")
    opened.add_argument("--fresh", action="store_true", help="make another job, whatever the last one stands at")
    arguments = parser.parse_args(argv)
    command = arguments.command
    try:
        made = settings()
        left = [part.name for part in missing(made)]
        if command == "settings":
            shown = {
                "cache": str(made.cache),
                "python": str(made.python),
                "models": {name: str(path) for name, path in made.models.items()},
                "env": dict(made.env),
                "missing": left,
            }
            sys.stdout.write(json.dumps(shown, indent=2) + "\n")
            return 1 if left else 0
        if left:
            _say(f"to be made under {made.cache}: {', '.join(left)}")
            _say(f"all of it needs about {DISK_NEEDED // 10**9} GB of disk, the network for pip, g++, and some minutes")
        start = time.monotonic()
        prepare(_say)
        took = f", made in {time.monotonic() - start:.0f} s" if left else ""
        _say(f"everything is ready under {made.cache}{took}")
        if command == "open":
            return open_it(made, arguments.fresh, os.environ, _say)
    except SetupProblem as problem:
        sys.stderr.write(f"{problem.message} {problem.next_step}".strip() + "\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was ready stays, the next call goes on from there\n")
        return 130
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
