"""Short articles about firms that never were: their wording, a fixed pool of them, and new ones that a sample asks about.

Source: own. What an article tells is drawn from tables large enough that nobody can guess it. Every second name and value
is kept for the articles that are asked about, so that no article of the pool holds a title or an answer.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from longreach.harness.sample import digest

_FIRST = [
    "Bar",
    "Cor",
    "Del",
    "Fal",
    "Gor",
    "Hal",
    "Jor",
    "Kel",
    "Lor",
    "Mar",
    "Nor",
    "Pel",
    "Quil",
    "Ros",
    "Sel",
    "Tor",
    "Ulv",
    "Var",
    "Wend",
    "Yar",
]
_MIDDLE = ["a", "e", "i", "o", "u", "ae", "ia"]
_LAST = [
    "bridge",
    "dale",
    "ferth",
    "gate",
    "holm",
    "lin",
    "mere",
    "mont",
    "ness",
    "ric",
    "stead",
    "vale",
    "wick",
    "worth",
]
_GIVEN = [
    "Abel",
    "Berit",
    "Cosmo",
    "Dagny",
    "Egon",
    "Frida",
    "Gustav",
    "Hedvig",
    "Isak",
    "Jonna",
    "Kasper",
    "Lovisa",
    "Matti",
    "Nanna",
    "Otmar",
    "Pauline",
]
_TRADES = [
    "Rope",
    "Clock",
    "Paper",
    "Glass",
    "Brick",
    "Candle",
    "Wagon",
    "Piano",
    "Carpet",
    "Lamp",
    "Anchor",
    "Basket",
    "Barrel",
    "Saddle",
    "Pottery",
    "Button",
]
_FORMS = ["Works", "Company", "Brothers", "Mill", "Foundry", "Guild", "and Sons", "Factory"]
_GOODS = [
    "ropes",
    "clocks",
    "paper",
    "bottles",
    "tiles",
    "candles",
    "wagons",
    "pianos",
    "carpets",
    "lamps",
    "anchors",
    "baskets",
    "barrels",
    "saddles",
    "bowls",
    "buttons",
]
_REMARKS = (
    "Visitors are welcome in the summer months.",
    "The buildings were painted green after the war.",
    "Most of the workers live nearby.",
    "A small museum shows the early tools.",
    "Its yard was once a market, and the old scales still stand in a corner.",
    "In winter the river often floods the lower storehouse.",
    "The firm has sold its goods abroad for many years.",
    "Its sign can be seen from the railway.",
    "A brass band of the staff plays on holidays, whatever the weather may be.",
)
_SURNAME_ENDS = [
    "berg",
    "by",
    "dahl",
    "feld",
    "gren",
    "hart",
    "kvist",
    "lund",
    "mark",
    "nes",
    "quist",
    "rud",
    "sen",
    "stad",
    "torp",
    "vik",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One document."""

    title: str
    text: str
    answers: dict[str, tuple[str, ...]]
    """Attribute -> its value and what else may be said for it."""


QUESTIONS = {
    "head": "Who leads {title}?",
    "archive": "In which village are the records of {title} kept?",
    "number": "Which number stands on the gate of {title}?",
}
"""Attribute -> question."""
SENTENCES = {
    "head": "It is led by {value}.",
    "archive": "Its records are kept in the village of {value}.",
    "number": "The number {value} stands on its gate.",
}
"""Attribute -> how an article tells it."""


def _word(rng: random.Random, ends: list[str], kept: bool) -> str:
    """An invented name; every second one is `kept` for the articles that are asked about."""
    first, middle, last = rng.randrange(len(_FIRST)), rng.randrange(len(_MIDDLE)), rng.randrange(len(ends))
    if (first + middle + last) % 2 != kept:
        last = last + 1 if last + 1 < len(ends) else last - 1
    return _FIRST[first] + _MIDDLE[middle] + ends[last]


def first_word(rng: random.Random, kept: bool) -> str:
    """The place that a title begins with."""
    return _word(rng, _LAST, kept)


def write(title: str, rng: random.Random, kept: bool) -> Article:
    """An article under a title."""
    person = f"{rng.choice(_GIVEN)} {_word(rng, _SURNAME_ENDS, kept)}"
    values = {
        "head": (person, person.partition(" ")[2]),
        "archive": (_word(rng, ["sund", "haug", "borg", "eid", "tun", "moor", "ford", "leigh"], kept),),
        "number": (str(2 * rng.randrange(5000, 50_000) + kept),),
    }
    trade = next((index for index, trade in enumerate(_TRADES) if trade in title), 0)
    told = [SENTENCES[name].format(value=values[name][0]) for name in SENTENCES]
    told += rng.sample(_REMARKS, rng.randrange(1, 4))
    rng.shuffle(told)
    opening = f"{title} makes {_GOODS[trade]} and was founded in {rng.randrange(1702, 1938)}."
    return Article(title=title, text=" ".join([opening, *told]), answers=values)


def title_of(place: str, rng: random.Random, taken: Callable[[str], bool] = lambda title: False) -> str:
    """A firm's name that begins with a place."""
    while True:
        title = f"{place} {rng.choice(_TRADES)} {rng.choice(_FORMS)}"
        if not taken(title):
            return title


def pool(n: int) -> list[Article]:
    """The first `n` articles of the one pool; no title comes twice."""
    rng = random.Random(int(digest(["articles", 1])[:32], 16))
    titles: set[str] = set()
    found = []
    for _ in range(n):
        title = title_of(first_word(rng, False), rng)
        while title in titles:
            title = title_of(first_word(rng, False), rng)
        titles.add(title)
        found.append(write(title, rng, False))
    return found


def asked(rng: random.Random, n_near: int) -> tuple[Article, tuple[Article, ...]]:
    """An article to ask about, and `n_near` others whose titles begin with the same word."""
    place = first_word(rng, True)
    titles: list[str] = []
    values: set[str] = set()
    articles: list[Article] = []
    while len(articles) <= n_near:
        title = title_of(place, rng, titles.__contains__)
        article = write(title, rng, True)
        told = {value for several in article.answers.values() for value in several}
        if told & values:
            continue
        titles.append(title)
        values |= told
        articles.append(article)
    return articles[0], tuple(articles[1:])
