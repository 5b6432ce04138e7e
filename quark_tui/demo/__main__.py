"""``python -m quark_tui.demo``: make the demonstration environment, or say where it is."""

from __future__ import annotations

import argparse
import json
import sys

from quark_tui.demo.setup import DISK_NEEDED, SetupProblem, missing, prepare, settings


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m quark_tui.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="make what is missing; a second call finds everything")
    commands.add_parser("settings", help="print paths and variables as JSON; exit 1 when a part is missing")
    command = parser.parse_args(argv).command
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
        prepare(_say)
    except SetupProblem as problem:
        sys.stderr.write(f"{problem.message} {problem.next_step}".strip() + "\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; what was ready stays, the next call goes on from there\n")
        return 130
    _say(f"everything is ready under {made.cache}")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
