"""`longreach check` from options to findings: opens the model as a run would, asks it, closes it."""

import asyncio

from longreach.harness.lengths import parse_length
from longreach.harness.running.battery_load import load_battery
from longreach.harness.running.check import ANSWER, Checker, check_lengths
from longreach.harness.running.checked import Checked
from longreach.harness.running.conduct import probe
from longreach.harness.running.options import Options
from longreach.harness.running.resolve import given_tokenizer, resolve_model
from longreach.harness.tokenizer import WordsTokenizer

FIRST = 4096
"""Shortest long canary, tokens; each further one is four times as long."""
DEFAULT = 32768
"""Longest canary where neither the user nor the endpoint names a window."""


def lengths_up_to(longest: int) -> list[int]:
    """4k, 16k, 64k ... and the longest itself.

    >>> lengths_up_to(32768)
    [4096, 16384, 32768]
    """
    found = []
    length = FIRST
    while length < longest:
        found.append(length)
        length *= 4
    return [*found, longest]


def check_model(options: Options, max_length: str | None) -> Checked:
    """Everything that canaries show about the model of `options`.

    Raises:
        ConfigError: an option makes no sense. ModelError: the endpoint does not answer.
    """
    battery = load_battery(options)
    given = given_tokenizer(battery)
    model, _ = resolve_model(battery, given)
    checker = Checker(
        model=model,
        tokenizer=given or model.tokenizer or WordsTokenizer(),
        reasoning_budget=battery.reasoning_budget,
        temperature=battery.temperature,
    )

    async def go() -> Checked:
        try:
            await probe(model)
            longest = parse_length(max_length) if max_length else model.window or DEFAULT
            least = ANSWER + battery.reasoning_budget + 1
            return await check_lengths(checker, [n for n in lengths_up_to(longest) if n > least])
        finally:
            await model.close()

    return asyncio.run(go())
