"""Settings for every suite: a slow machine is no failure, and one run of the suite finds what the next one finds."""

from hypothesis import settings

settings.register_profile("suite", deadline=None, print_blob=True)
settings.load_profile("suite")
