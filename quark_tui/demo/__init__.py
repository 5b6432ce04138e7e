"""A real target environment with small models and data, made once in the user's cache: for demonstrations and tests."""
