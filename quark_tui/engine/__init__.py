"""One use case a module: what a command answers and what a screen shows. Joins ``core`` and ``io``; no Textual."""
