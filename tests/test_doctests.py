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


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
