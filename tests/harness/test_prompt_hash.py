"""The hash of a prompt is the digest of its messages, however it is computed."""

import pytest

from longreach.harness.sample import Message, Point, Sample, digest

TEXTS = (
    "",
    "plain",
    'say "hi"\\n and \\ and\n\r\n\ttabs',
    "\x00\x01\x0b\x1f \x7f \u2028",
    "naïve 日本語 \U0001f600",
    "lone \ud800 surrogate",
    '\\"\n' * 50,
)


@pytest.mark.parametrize("text", TEXTS)
def test_the_hash_of_a_prompt_is_the_digest_of_its_messages(text: str) -> None:
    messages = (Message(role="system", content="Be brief."), Message(role="user", content=text))
    point = Point(task="t@1", length=1, depth=None, index=0, seed=1)
    sample = Sample(point=point, messages=messages, target=(), answer_prefix=text[:3], n_tokens=1, tokenizer="words")
    assert sample.prompt_sha256 == digest([[[m.role, m.content] for m in messages], text[:3]])
