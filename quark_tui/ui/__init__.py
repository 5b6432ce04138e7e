"""The only package that imports Textual and Rich."""
