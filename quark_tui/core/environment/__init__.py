"""The environment that a command needs, held against what was seen."""
