"""The examples in docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import longreach.adapters
import longreach.harness
import longreach.suites

NAMES = [
    item.name
    for package in (longreach.harness, longreach.suites, longreach.adapters)
    for item in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if ".front" not in item.name
]

EXTRAS = {"longreach.adapters.inspect_tasks": "inspect_ai", "longreach.adapters.lm_eval_class": "lm_eval"}
"""Modules that another harness loads, and only where it is installed."""


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason=f"{EXTRAS[name]} is an extra of its own")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
