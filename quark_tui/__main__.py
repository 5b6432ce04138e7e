"""``python -m quark_tui``."""

import sys

from quark_tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
