"""Every written form of a number has its value, and what is glued to more is another thing."""

from decimal import Decimal

import pytest

from longreach.harness.numbers import find_numbers, parse_number

SAME = (
    "4182", "4,182", "4 182", "4\u00a0182", "4\u202f182", "4'182", "4\u2019182", "4_182", "4182.0", "4182.00", "+4182", "4.182e3",
    "four thousand one hundred eighty-two", "Four thousand, one hundred and eighty-two", "forty-one hundred eighty two",
    "four one eight two", "four-one-eight-two", "٤١٨٢", "٤٬١٨٢", "४१८२", "４１８２", "４，１８２", "4{,}182", "4\\,182", "$4182", "€4182",
    "#4182", "No.4182", "4182%", "4182nd", "第4182号", "四千一百八十二", "四一八二", "(4182)", "4182.", "4182,", "\"4182\"", "x:4182",
)  # fmt: skip
OTHER = (
    "14182", "41820", "4182.5", "4182,5", "4182-7", "4182-B", "B4182", "B-4182", "4182b", "_4182", "4182/3", "12:4182", "4182:12",
    "3.4182.1", "-4182", "\u22124182", "4182\u20137", "0.4182", ".4182", "4,1820", "1,004,182", "2024-41-82", "four thousand",
    "forty-one eighty-three", "four thousand one hundred", "one four one eight two", "",
)  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_all_written_forms_are_the_same_number(text: str) -> None:
    for framed in (text, f"It is {text}", f"{text}\nthat is all", f"It is {text} in the end"):
        assert [number.value for number in find_numbers(framed)] == [Decimal(4182)]


@pytest.mark.parametrize("text", OTHER)
def test_what_is_glued_to_more_is_not_that_number(text: str) -> None:
    for framed in (text, f"It is {text} in the end"):
        assert not any(number.reads_as(Decimal(4182)) for number in find_numbers(framed))


def test_one_point_and_three_digits_may_be_read_either_way() -> None:
    (number,) = find_numbers("It is 4.182 there")
    assert number.reads_as(Decimal("4.182"))
    assert number.reads_as(Decimal(4182))
    assert number.value == Decimal("4.182")


def test_two_points_separate_thousands() -> None:
    assert find_numbers("1.234.567")[0].value == Decimal(1234567)


def test_lists_are_several_numbers() -> None:
    for text in (
        "48213, 53122 and 10077",
        "48213,53122,10077",
        "48213 53122 10077",
        "- 48213\n- 53122\n- 10077",
        "48213/ 53122; 10077",
    ):
        assert [int(number.value) for number in find_numbers(text)] == [48213, 53122, 10077]


def test_words_in_a_list_are_several_numbers() -> None:
    assert [int(number.value) for number in find_numbers("one, two and three")] == [1, 2, 3]
    assert [int(number.value) for number in find_numbers("twenty, thirty")] == [20, 30]


def test_large_words_build_up() -> None:
    (number,) = find_numbers("two million three hundred thousand and four")
    assert number.value == 2_300_004
    assert find_numbers("a hundred")[0].value == 100
    assert find_numbers("twelve hundred")[0].value == 1200


def test_spans_are_characters_of_the_original_text() -> None:
    text = "Die Zahl ٤٬١٨٢, and then forty-two!"
    assert [text[number.start : number.end] for number in find_numbers(text)] == ["٤٬١٨٢", "forty-two"]


def test_han_numerals_with_units_and_scales() -> None:
    assert [int(number.value) for number in find_numbers("三万二千零五 十二 两百")] == [32005, 12, 200]


def test_a_whole_text_may_be_one_number() -> None:
    assert parse_number(" 4,182. ") == 4182
    assert parse_number("$42") == 42
    assert parse_number("12 or 13") is None
    assert parse_number("amber heron") is None
    assert parse_number("") is None


def test_long_rows_of_digits_do_not_take_long() -> None:
    assert len(find_numbers("7" * 100_000)) == 1
    assert find_numbers("1," * 50_000)
    assert find_numbers("1-" * 50_000) == ()
    assert find_numbers("one " * 20_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quarenta e um mil oitocentos e vinte e quatro", 41824),
        ("São quarenta e um mil, oitocentos e vinte e quatro.", 41824),
        ("mil e duzentas", 1200),
        ("duas mil e três", 2003),
        ("cento e um", 101),
        ("quatro um oito dois quatro", 41824),
        ("um milhão e duzentos mil", 1_200_000),
        ("Сорок одна тысяча восемьсот двадцать четыре", 41824),
        ("двести три тысячи пять", 203_005),
        ("девяносто тысяч одиннадцать", 90_011),
        ("четыре один восемь", 418),
        ("四万一千八百二十四", 41824),
        ("四一八二四", 41824),
        ("４１８２４号", 41824),
        ("номер 41 824", 41824),
    ],
)
def test_numbers_are_read_in_the_words_and_digits_of_each_language(text: str, value: int) -> None:
    assert [found.value for found in find_numbers(text)] == [value]


@pytest.mark.parametrize(
    "text", ["um homem e uma ponte", "uma vez que um dia", "одна дорога, два дома", "Os dois e o cão"]
)
def test_lone_small_words_of_portuguese_and_russian_are_no_numbers(text: str) -> None:
    assert find_numbers(text) == ()


def test_two_numbers_in_words_stay_two() -> None:
    text = "vinte e um, trinta e dois; сто пять и двести шесть"
    assert [int(found.value) for found in find_numbers(text)] == [21, 32, 105, 206]
