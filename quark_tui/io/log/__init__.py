"""Reading logs that may be huge, growing or gone."""
