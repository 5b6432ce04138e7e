"""quark-tui: quantize large language models with AMD Quark from a terminal.

Nothing is imported here: the run supervisor carries this file unchanged, and every command's start-up pays for it.
"""

__version__ = "0.1.0"
