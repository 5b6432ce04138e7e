"""Effects: files, processes, probes. No Textual."""
