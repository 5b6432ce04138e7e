"""Full screens, one a module."""
