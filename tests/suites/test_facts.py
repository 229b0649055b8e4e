"""The banks of wording: enough templates, questions that give nothing away, draws that never collide."""

import random
import re

import pytest

from longreach.harness.errors import ConfigError
from longreach.suites.facts import Draw, bank, check_language, find, languages, recognise
from longreach.suites.filler import mixed

GROUPS = ("number", "code", "fact", "instruction", "multi", "distractor", "conflict", "multihop2", "multihop3")


@pytest.fixture(params=languages())
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _slots(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_every_kind_has_at_least_ten_templates(language: str) -> None:
    for group in GROUPS:
        assert len(bank(language).groups[group]) >= (6 if group.startswith("multihop") else 10), group


def test_a_question_asks_with_the_key_and_never_with_the_value(language: str) -> None:
    for group in GROUPS:
        for template in bank(language).groups[group]:
            everything = set().union(*map(_slots, template.needles))
            assert "place" in _slots(template.question)
            assert _slots(template.question) <= everything - {"value", "value2"}


def test_a_question_belongs_to_one_template_of_its_group(language: str) -> None:
    for group in GROUPS:
        templates = bank(language).groups[group]
        draw = Draw(bank(language), random.Random(3))
        for template in templates:
            question = template.question.format(place=draw.one("place"), building="boat shed")
            assert [other for other in templates if recognise([other], question)] == [template]


def test_every_slot_has_a_pool_and_every_ask_its_own_wording(language: str) -> None:
    wording = bank(language)
    for group in GROUPS:
        for template in wording.groups[group]:
            assert template.value in wording.pools
            for sentence in template.needles:
                assert {slot.rstrip("2") for slot in _slots(sentence)} - {"value"} <= set(wording.pools)
    assert len(set(wording.asks.values())) == len(wording.asks)


def test_needles_do_not_announce_themselves(language: str) -> None:
    for group in GROUPS:
        for template in bank(language).groups[group]:
            for sentence in template.needles:
                assert not re.search(
                    r"(?i)remember|secret|magic|password|important|needle|answer is|memori[sz]e", sentence
                )
                assert "\n" not in sentence


def test_draws_are_many_and_never_contain_one_another(language: str) -> None:
    for pool, least in (("place", 1000), ("number", 50_000), ("code", 10**6), ("name", 3000), ("person", 10_000)):
        source = bank(language).pools[pool]
        size = 1
        for part in source.parts:
            size *= len(part)
        for sign in source.mask:
            size *= {"#": 10, "@": 24}.get(sign, 1)
        assert size >= least, pool
    draw = Draw(bank(language), random.Random(1))
    drawn = [draw.one(pool) for pool in ("place", "number", "code", "name", "words", "person") for _ in range(40)]
    assert not [(one, other) for one in drawn for other in drawn if one is not other and one in other]


def test_a_near_miss_shares_the_first_half_of_the_name(language: str) -> None:
    draw = Draw(bank(language), random.Random(5))
    place = draw.one("place")
    near = draw.one("place", like=place)
    starts = bank(language).pools["place"].parts[0]
    assert near != place
    assert [start for start in starts if near.startswith(start)] == [
        start for start in starts if place.startswith(start)
    ]


def test_an_exhausted_pool_says_so(language: str) -> None:
    draw = Draw(bank(language), random.Random(1))
    with pytest.raises(ConfigError, match="pool 'building' .* has no unused entry left"):
        for _ in range(30):
            draw.one("building")


def test_no_name_of_the_bank_stands_in_the_filler(language: str) -> None:
    words = set(re.findall(r"\w+", mixed(400_000, 1).lower()))
    pools = bank(language).pools
    places = {(start + end).lower() for start in pools["place"].parts[0] for end in pools["place"].parts[1]}
    assert not places & words
    assert not any(word.isdigit() for word in words)


def test_a_sentence_is_found_only_whole() -> None:
    known = {"place": "Brinmouth"}
    text = (
        "The dairy of Brinmouth sent out a crate numbered 12345. The dairy of Brinmouthe sent out a crate numbered 1."
    )
    assert find("The dairy of {place} sent out a crate numbered {value}.", text, known) == [{"value": "12345"}]
    assert find("The dairy of {place} sent out a crate numbered {value}.", text[8:40], known) == []


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="no wording in language 'xx'; one of: .*en"):
        check_language("xx")
    with pytest.raises(ConfigError, match="no wording in language 'xx'"):
        bank("xx")
