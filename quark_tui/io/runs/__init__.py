"""Starting, recording and signalling a run that outlives every user interface."""
