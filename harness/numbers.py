"""Numbers in text: every written form of the same number has the same value.

`find_numbers` reads digits of any script ("4182", "4,182", "4 182", "4.182.000", "4182.0", "4.182e3", full-width and
Arabic-Indic digits, LaTeX "4{,}182"), English number words ("four thousand one hundred eighty-two", "four one eight
two"), Portuguese and Russian ones (`number_words`) and Chinese numerals of two or more characters.

What is joined to more digits or letters is another thing and is not read as a number: "14182" is not 4182, and neither
"4182-7" nor "4182.5" nor "B4182" nor "4182b" nor "12:41" contains 4182. Units in caseless scripts may follow at once.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from longreach.harness.number_words import written_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number and where it stands."""

    value: Decimal
    start: int
    """First character in the text."""
    end: int
    """One past the last character."""
    also: Decimal | None = None
    """Second reading of an ambiguous form: "4.182" is 4.182 in English and 4182 in German or Portuguese."""

    def reads_as(self, value: Decimal) -> bool:
        """True if `value` is one of its readings."""
        return value == self.value or (self.also is not None and value == self.also)


# Separators and signs by what they mean, one character for one, so that spans hold in the original text.
_ALIKE = str.maketrans(
    {
        "\u00a0": " ",
        "\u2009": " ",
        "\u202f": " ",
        "\u066c": ",",
        "\uff0c": ",",
        "\u066b": ".",
        "\uff0e": ".",
        "\u2019": "'",
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2212": "-",
    }
)
_DIGITS = re.compile(
    r"""(?P<sign>(?<![\w.])[-+])?
        (?: (?P<grouped>(?<!\d)\d{1,3}(?P<sep>,|\ |'|_|\.|\{,\}|\\,)\d{3}(?:(?P=sep)\d{3})*(?!\d))
          | (?P<plain>\d+) )
        (?P<fraction>\.\d+|,\d{1,2}(?![\d,]))?
        (?P<exponent>[eE][-+]?\d{1,3}(?!\w))?
      | (?<![\w.])(?P<bare>\.\d+)""",
    re.VERBOSE,
)
_JOINED = re.compile(r"[\w]+(?:[-/:.,'][\w]+)*")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)


def find_numbers(text: str) -> tuple[Number, ...]:
    """All numbers of `text`, in order. Spans are characters of `text`."""
    plain = _plain_digits(text)
    found = [*_in_digits(plain), *_in_words(plain), *_in_other_words(plain), *_in_han(text)]
    return tuple(sorted(found, key=lambda number: number.start))


def _in_other_words(text: str) -> Iterator[Number]:
    for value, start, end in written_numbers(text):
        yield Number(value=Decimal(value), start=start, end=end)


def parse_number(text: str) -> Decimal | None:
    """The value if the whole of `text` is one number (a sign of currency or a full stop may stand beside it)."""
    trimmed = text.strip().strip("$€£¥.")
    found = find_numbers(trimmed)
    if len(found) == 1 and found[0].start == 0 and found[0].end == len(trimmed):
        return found[0].value
    return None


def _plain_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(_plain_digit(char) for char in text.translate(_ALIKE))


def _plain_digit(char: str) -> str:
    value = unicodedata.decimal(char, None) if char > "\x7f" else None
    return char if value is None else str(value)


def _cased(char: str) -> bool:
    return char == "_" or (char.isalpha() and char.lower() != char.upper())


def _in_digits(text: str) -> Iterator[Number]:
    position = 0
    while match := _DIGITS.search(text, position):
        start, end = match.span()
        position = end
        if _joined_before(text, start) or _joined_after(text, end):
            blob = _JOINED.match(text, start + len(match["sign"] or ""))
            position = max(end, blob.end() if blob else end)
            continue
        value, also = _readings(match)
        if value is not None:
            yield Number(value=value, also=also, start=start, end=end)


def _joined_before(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    if not before:
        return False
    if _cased(before) or before.isdigit():
        return True
    return before in "-/:" and text[start - 2 : start - 1].isalnum() and (before == "-" or text[start - 2].isdigit())


def _joined_after(text: str, end: int) -> bool:
    after, beyond = text[end : end + 1], text[end + 1 : end + 2]
    if not after:
        return False
    if _cased(after):
        return _ORDINAL.match(text, end) is None
    return (after == "-" and beyond.isalnum()) or (after in "./:" and beyond.isdigit())


def _readings(match: re.Match[str]) -> tuple[Decimal | None, Decimal | None]:
    if match["bare"]:
        return Decimal("0" + match["bare"]), None
    sign = "-" if match["sign"] == "-" else ""
    fraction = (match["fraction"] or "").replace(",", ".")
    exponent = match["exponent"] or ""
    grouped, separator = match["grouped"], match["sep"]
    try:
        if grouped is None:
            return Decimal(sign + match["plain"] + fraction + exponent), None
        whole = Decimal(sign + grouped.replace(separator, "") + fraction + exponent)
        if separator == "." and grouped.count(".") == 1 and not fraction:
            return Decimal(sign + grouped + exponent), None if exponent else whole
    except InvalidOperation:  # more digits than the context can hold in an exponent: no answer of ours looks like that
        return None, None
    return whole, None


_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen"""
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: value for value, word in enumerate(_SMALL.split())}
_TENS = {word: 10 * value for value, word in enumerate(_ROUND.split(), 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ANY = "|".join(sorted([*_UNITS, *_TENS, *_SCALES, "hundred"], key=len, reverse=True))
_WORD = re.compile(rf"\b(?:{_ANY})\b", re.IGNORECASE)
_GLUE = re.compile(r"(?:\s+|\s*-\s*|,?\s+and\s+|,\s+)\Z", re.IGNORECASE)


def _in_words(text: str) -> Iterator[Number]:
    run: list[re.Match[str]] = []
    for match in _WORD.finditer(text):
        glue = text[run[-1].end() : match.start()] if run else ""
        if run and not (_GLUE.match(glue) and _continues(run[-1][0].lower(), match[0].lower(), glue)):
            yield from _numbers_of(run)
            run = []
        run.append(match)
    yield from _numbers_of(run)


def _continues(last: str, word: str, glue: str) -> bool:
    """True if `word` may belong to the number that `last` is in: a comma or "and" only follows a large word."""
    large = last in _SCALES or last == "hundred"
    return large or not ("," in glue or "and" in glue.lower())


def _numbers_of(run: list[re.Match[str]]) -> Iterator[Number]:
    words = [match[0].lower() for match in run]
    if len(words) > 1 and all(_UNITS.get(word, 99) < 10 for word in words):
        digits = "".join(str(_UNITS[word]) for word in words)
        yield Number(value=Decimal(digits), start=run[0].start(), end=run[-1].end())
        return
    first = 0
    while first < len(words):
        value, used = _value_of(words[first:])
        yield Number(value=Decimal(value), start=run[first].start(), end=run[first + used - 1].end())
        first += used


def _value_of(words: list[str]) -> tuple[int, int]:
    """Value of the longest number that `words` begin with, and how many words it takes."""
    total, group, used = 0, 0, 0
    scale_limit = 10**12
    open_digits = 100  # what the next small word must stay below: 100 at the start, 10 after tens, 0 after units
    for word in words:
        if word in _SCALES:
            scale = _SCALES[word]
            if scale >= scale_limit:
                break
            total, group, scale_limit, open_digits = total + (group or 1) * scale, 0, scale, 100
        elif word == "hundred":
            if group >= 100:
                break
            group, open_digits = (group or 1) * 100, 100
        else:
            value = _UNITS.get(word, _TENS.get(word, 0))
            if used and (value >= open_digits or value == 0):
                break
            group += value
            open_digits = 10 if word in _TENS else 0
        used += 1
    return total + group, max(used, 1)


_HAN_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN_SCALES = {"万": 10**4, "亿": 10**8}
_HAN = re.compile(f"[{''.join([*_HAN_DIGITS, *_HAN_UNITS, *_HAN_SCALES])}]{{2,}}")


def _in_han(text: str) -> Iterator[Number]:
    for match in _HAN.finditer(text):
        yield Number(value=Decimal(_han_value(match[0])), start=match.start(), end=match.end())


def _han_value(numeral: str) -> int:
    if all(char in _HAN_DIGITS for char in numeral):
        return int("".join(str(_HAN_DIGITS[char]) for char in numeral))
    total = group = digit = 0
    for char in numeral:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_UNITS:
            group, digit = group + (digit or 1) * _HAN_UNITS[char], 0
        else:
            total, group, digit = (total + group + digit) * _HAN_SCALES[char], 0, 0
    return total + group + digit
