"""What the program promises about its cost, as ratios measured in one run."""
