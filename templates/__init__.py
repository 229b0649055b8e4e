"""Jinja text, battery files and the figure style, read through `importlib.resources`."""
