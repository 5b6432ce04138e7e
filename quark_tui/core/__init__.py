"""Pure rules and values: no clock, disk, process or Textual. Standard library only."""
