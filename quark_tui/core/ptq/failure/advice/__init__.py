"""Next steps: the smallest bounded change, its side effect, and the checkpoint that it leads back to."""
