"""What a model is, from its configuration and its weight headers alone."""
