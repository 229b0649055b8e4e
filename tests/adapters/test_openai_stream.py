import pytest

from longreach.adapters.openai_errors import message_of, retry_after_s
from longreach.adapters.openai_stream import Collector, ThinkSplitter


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("4817", "", "4817"),
        ("<think>hm</think>\n\n4817", "hm", "4817"),
        ("\n<think>\nhm\n</think>4817", "\nhm\n", "4817"),
        ("<thinking>hm</thinking> 4817", "hm", "4817"),
        ("<think>never closed 4817", "never closed 4817", ""),
        ("<think></think>4817", "", "4817"),
        ("the template opened it</think>\n4817", "the template opened it", "4817"),
        ("<b>4817</b>", "", "<b>4817</b>"),
        ("a <think> in the middle", "", "a <think> in the middle"),
        ("<th", "", "<th"),
        ("", "", ""),
    ],
)
def test_think_tags_are_taken_off_however_the_text_is_cut(text: str, reasoning: str, answer: str) -> None:
    for size in (1, 2, 3, 5, 100):
        splitter = ThinkSplitter()
        for start in range(0, len(text), size):
            splitter.feed(text[start : start + size])
        assert (splitter.reasoning, splitter.answer) == (reasoning, answer)


def test_inline_reasoning_does_not_start_the_clock_of_the_answer() -> None:
    reply = Collector()
    for at_s, content in enumerate(["<think>", "hm", "</think>", "\n\n", "4", "8"], start=1):
        assert reply.feed({"choices": [{"delta": {"content": content}}]}, float(at_s))
    reply.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]}, 9.0)
    response = reply.response(9.0, streamed=True, adapted={})
    assert (response.text, response.reasoning) == ("48", "hm")
    assert (response.ttft_s, response.ttft_answer_s) == (1.0, 5.0)


def test_content_in_parts_is_joined_and_its_thinking_set_apart() -> None:
    reply = Collector()
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "48"}]
    reply.feed({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}, 1.0)
    response = reply.response(1.0, streamed=False, adapted={})
    assert (response.text, response.reasoning) == ("48", "hm")


@pytest.mark.parametrize(
    ("told", "known"),
    [(981, 981), (0, 0), (2**53 - 1, 2**53 - 1), (2**53, None), (10**30, None), (-1, None), (True, None)],
)
def test_a_count_that_no_prompt_can_have_is_unknown(told: int, known: int | None) -> None:
    reply = Collector()
    usage = {"prompt_tokens": told, "completion_tokens": told}
    reply.feed({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage}, 1.0)
    response = reply.response(1.0, streamed=False, adapted={})
    assert (response.n_prompt_tokens, response.n_output_tokens) == (known, known)


def test_only_the_first_choice_is_read() -> None:
    reply = Collector()
    reply.feed({"choices": [{"index": 1, "delta": {"content": "no"}}]}, 1.0)
    assert reply.ttft_s is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "150"}, 150.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "junk", "retry-after": "9"}, 9.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:05 GMT"}, 5.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=1792567680.0) == seconds


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ({"detail": [{"msg": "no"}, {"msg": "never"}]}, "no; never"),
        ("<html><head><title> Bad\nGateway </title></head></html>", "a web page titled 'Bad\\nGateway'"),
        (None, ""),
        ("x" * 500, "x" * 400),
    ],
)
def test_the_human_sentence_is_found_in_any_error_body(body: object, said: str) -> None:
    assert message_of(body) == said
