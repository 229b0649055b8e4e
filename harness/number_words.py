"""Numbers written out in Portuguese and Russian: "quarenta e um mil oitocentos e vinte e quatro", "сорок одна тысяча".

Only runs of two or more number words are read: a lone "um" or "одна" is an article or a pronoun far more often. Digits that
are named one by one ("quatro um oito") are joined.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Numerals:
    """The number words of one language."""

    values: Mapping[str, int]
    """Word -> value below 1000."""
    scales: Mapping[str, int]
    glue: re.Pattern[str]
    """What may stand between two words of one number."""
    word: re.Pattern[str]


def _numerals(values: str, scales: str, glue: str) -> Numerals:
    """From `value: word word, ...` tables."""
    of = [
        {
            word: int(value)
            for value, words in (entry.split(":") for entry in table.split(","))
            for word in words.split()
        }
        for table in (values, scales)
    ]
    every = "|".join(sorted({**of[0], **of[1]}, key=len, reverse=True))
    return Numerals(
        values=of[0],
        scales=of[1],
        glue=re.compile(glue, re.IGNORECASE),
        word=re.compile(rf"\b(?:{every})\b", re.IGNORECASE),
    )


NUMERALS: tuple[Numerals, ...] = (
    _numerals(
        "0: zero, 1: um uma, 2: dois duas, 3: três tres, 4: quatro, 5: cinco, 6: seis, 7: sete, 8: oito, 9: nove, 10: dez,"
        "11: onze, 12: doze, 13: treze, 14: catorze quatorze, 15: quinze, 16: dezasseis dezesseis, 17: dezassete dezessete,"
        "18: dezoito, 19: dezanove dezenove, 20: vinte, 30: trinta, 40: quarenta, 50: cinquenta, 60: sessenta, 70: setenta,"
        "80: oitenta, 90: noventa, 100: cem cento, 200: duzentos duzentas, 300: trezentos trezentas,"
        "400: quatrocentos quatrocentas, 500: quinhentos quinhentas, 600: seiscentos seiscentas, 700: setecentos setecentas,"
        "800: oitocentos oitocentas, 900: novecentos novecentas",
        "1000: mil, 1000000: milhão milhões",
        r"\s+(?:e\s+)?|,\s+",
    ),
    _numerals(
        "0: ноль нуль, 1: один одна одно, 2: два две, 3: три, 4: четыре, 5: пять, 6: шесть, 7: семь, 8: восемь, 9: девять,"
        "10: десять, 11: одиннадцать, 12: двенадцать, 13: тринадцать, 14: четырнадцать, 15: пятнадцать, 16: шестнадцать,"
        "17: семнадцать, 18: восемнадцать, 19: девятнадцать, 20: двадцать, 30: тридцать, 40: сорок, 50: пятьдесят,"
        "60: шестьдесят, 70: семьдесят, 80: восемьдесят, 90: девяносто, 100: сто, 200: двести, 300: триста, 400: четыреста,"
        "500: пятьсот, 600: шестьсот, 700: семьсот, 800: восемьсот, 900: девятьсот",
        "1000: тысяча тысячи тысяч, 1000000: миллион миллиона миллионов",
        r"\s+",
    ),
)


def written_numbers(text: str) -> Iterator[tuple[int, int, int]]:
    """Value, start and end of every number of two or more words, language by language."""
    for numerals in NUMERALS:
        run: list[re.Match[str]] = []
        for match in numerals.word.finditer(text):
            if run and not numerals.glue.fullmatch(text, run[-1].end(), match.start()):
                yield from _numbers_of(run, numerals)
                run = []
            run.append(match)
        yield from _numbers_of(run, numerals)


def _numbers_of(run: list[re.Match[str]], numerals: Numerals) -> Iterator[tuple[int, int, int]]:
    words = [match[0].lower() for match in run]
    if len(words) > 1 and all(numerals.values.get(word, 99) < 10 for word in words):
        yield int("".join(str(numerals.values[word]) for word in words)), run[0].start(), run[-1].end()
        return
    first = 0
    while first < len(words):
        value, used = _value_of(words[first:], numerals)
        if used > 1:
            yield value, run[first].start(), run[first + used - 1].end()
        first += used


def _value_of(words: list[str], numerals: Numerals) -> tuple[int, int]:
    """Value of the longest number that `words` begin with, and how many words it takes."""
    total = group = used = 0
    smallest_scale = 10**9
    for before, word in pairwise(["", *words]):
        if word in numerals.scales:
            scale = numerals.scales[word]
            if scale >= smallest_scale:
                break
            total, group, smallest_scale = total + (group or 1) * scale, 0, scale
        else:
            value = numerals.values[word]
            if used and (value == 0 or value >= _room(numerals.values.get(before, 1000))):
                break
            group += value
        used += 1
    return total + group, max(used, 1)


def _room(value: int) -> int:
    """What the next word must stay below, by the value of the word before (1000 after a scale)."""
    if value >= 1000:
        return 1000
    return 100 if value >= 100 else 10 if value >= 20 else 0
