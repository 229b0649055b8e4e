"""RULER's noise as its generators of 2024 wrote it: lines joined by blanks, a statement at the head of the next line."""

from collections.abc import Sequence

from longreach.harness.tokenizer import Tokenizer
from longreach.suites.filler import NOISE
from longreach.suites.joins import count
from longreach.suites.units import Composed, cut_off

LINE = NOISE + "\n"


def write_lines(n_lines: int, statements: Sequence[str], places: Sequence[int]) -> str:
    """`n_lines` noise lines with each statement before the line of its place (ascending)."""
    parts = [LINE] * n_lines
    for shift, (place, statement) in enumerate(zip(places, statements, strict=True)):
        parts.insert(place + shift, statement)
    return " ".join(parts).replace(". \n", ".\n")


def compose_noise(n_tokens: int, tokenizer: Tokenizer, statements: Sequence[str], depths: Sequence[float]) -> Composed:
    """About `n_tokens` of noise, the statements at their depths (0.0 first, 1.0 last), before different lines."""
    two_lines = count(tokenizer, f"{LINE} {LINE} {LINE} ")
    line = two_lines - count(tokenizer, f"{LINE} {LINE} ")
    sizes = [count(tokenizer, f"{LINE} {LINE} {text} {LINE} ") - two_lines for text in statements]
    room = n_tokens - sum(sizes)
    n_lines = max(room // line, len(statements))
    places: list[int] = []
    for number, depth in enumerate(depths):
        least = places[-1] + 1 if places else 0
        places.append(min(max(int(depth * n_lines), least), n_lines - len(depths) + number))
    rest, n_rest = cut_off(tokenizer, " " + NOISE, max(0, room - n_lines * line))
    return Composed(
        text=write_lines(n_lines, statements, places) + rest,
        n_tokens=n_lines * line + sum(sizes) + n_rest,
        needles=tuple(statements),
        placed=tuple(place / n_lines for place in places),
        notes=("the last line is cut",) if rest else (),
    )
