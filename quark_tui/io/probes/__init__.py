"""Scripts that run in the *target* interpreter: standard library only, one JSON object on stdout."""
