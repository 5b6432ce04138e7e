"""Questions and answers over a screen; each gives back a value or None."""
