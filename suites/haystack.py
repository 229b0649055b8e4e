"""Prompts of an exact length with needles at exact depths: the craft that every task shares.

The method: token counts attributed to clean cuts of the corpus, a joint choice of window and depth, the joins with
foreign text counted in place, and one proving encode of the rendered prompt. If the proof disagrees, the target is
shifted by the difference and the prompt built once more from the same start.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from longreach.harness.errors import ConfigError, DataError, InfeasibleCell
from longreach.harness.sample import Message, Point, Sample
from longreach.harness.tokenizer import UNPROVEN, Tokenizer, proves
from longreach.suites.corpus import Corpus, get_corpus
from longreach.suites.joins import PAD, Frame, Needle, count, edges, join_cost, write
from longreach.suites.nested import draw_start, own_corpus
from longreach.suites.presence import first_present
from longreach.suites.window import Window, choose, move_end

__all__ = ["Needle", "build"]

TOLERANCE = 8
"""Tokens by which a prompt may fall short of its length."""
AIM = 4
"""Tokens short that are aimed at: joins nobody foresaw cost or save one or two."""
BUILDS = 10
"""Prompts built for one point before giving up."""
FREE_BUILDS = 3
"""Corrections that choose end and needles anew; after those only the window's end moves."""
WINDOWS = 64
"""Windows tried for one that holds none of the `absent` strings."""
_MARK = "\u2060haystack\u2060"


def build(
    point: Point,
    tokenizer: Tokenizer,
    *,
    haystack: str,
    needles: Sequence[Needle],
    head: str,
    tail: str,
    reserve: int,
    rng: random.Random,
    target: tuple[str, ...],
    choices: tuple[str, ...] = (),
    answer_prefix: str = "",
    absent: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    anchor: int = 0,
    every_depth: bool = False,
    item: random.Random | None = None,
) -> Sample:
    """One user message, `head` + haystack with needles + `tail`, of `point.length` - `reserve` tokens less 0 to 8.

    Args:
        haystack: mixed, repeat, noise (with /LANGUAGE), a structure, stdlib, bible, essays, or a pinned `file:PATH#DIGEST`.
        needles: in text order; the order is kept, each goes to a cut of its own where there are enough.
        anchor: index of the needle whose depth is promised within a point; the others stand as near as they can.
        every_depth: the others' depths are promised too, wherever the text can be cut there.
        item: draws where the filler starts, the same at every length and depth (`nested`); else `rng` does.
        absent: strings that must not stand in the drawn window (as whole words, whatever the case).

    Raises:
        InfeasibleCell: the length cannot hold all that; `minimum` says which might.
        DataError: the text is unusable, or each window of it holds an `absent` string.
    """
    frame = frame_of(tokenizer, head, tail, answer_prefix)
    n_needles = sum(count(tokenizer, " " + needle.text) for needle in needles)
    wanted = point.length - reserve - frame.n_tokens - n_needles - AIM
    span = None
    if item is None:
        corpus = get_corpus(haystack, point.length, point.seed, tokenizer)
    else:
        corpus, span = own_corpus(haystack, point.length, point.seed, tokenizer, item)
        rng = item
    if wanted < corpus.smallest:
        raise _infeasible(point, reserve, frame.n_tokens, n_needles, wanted, corpus.smallest)
    budget = point.length - reserve
    depths = [needle.depth for needle in needles]
    unwanted = [text for text in (*absent, *(needle.text for needle in needles)) if text]
    proven = proves(tokenizer, point)
    window: Window | None = None
    missing = error = padding = 0  # tokens that the last try lacked; by which its proof disagreed with the prediction
    for tries in range(BUILDS):
        if window is None or tries <= FREE_BUILDS:
            window = _window(corpus, wanted, depths, anchor, unwanted, rng, window, every_depth, span)
        else:
            window, padding = _adjusted(corpus, tokenizer, window, padding, missing)
            low, high = edges(corpus, window)
            if first_present(corpus, low, high, unwanted):
                window, padding = None, 0
                continue
        predicted = frame.n_tokens + window.n_tokens(corpus.cuts) + n_needles
        # Where a proof follows anyway, the first prompt need not know what its joins cost: it aims at the middle.
        trusting = proven and tries == 0 and 0 <= budget - predicted <= TOLERANCE
        draft = write(corpus, tokenizer, window, needles, frame, padding, counted=not trusting)
        if not trusting:
            predicted = frame.n_tokens + draft.n_tokens
        n_tokens = predicted + error
        if 0 <= budget - n_tokens <= TOLERANCE:
            messages = (Message(role="user", content="".join((head, *draft.pieces, tail))),)
            if not proven:
                break
            n_tokens = tokenizer.count(tokenizer.render(messages, answer_prefix))
            if 0 <= budget - n_tokens <= TOLERANCE:
                break
            error = 0 if trusting else n_tokens - predicted
        missing = budget - AIM - n_tokens
        wanted += missing
        if wanted < corpus.smallest:
            raise _infeasible(point, reserve, frame.n_tokens, n_needles, wanted, corpus.smallest)
    else:
        raise DataError(
            f"no prompt of {point.length:,} tokens could be made from haystack {haystack!r} with tokenizer "
            f"{tokenizer.name!r}: {BUILDS} tries ended {missing + AIM:,} tokens short; choose another text or length"
        )
    facts = {
        "needles": [needle.text for needle in needles],
        "context": [len(head), len(head) + draft.n_characters],
        "recycled": window.n_tokens(corpus.cuts) > corpus.period,
        "notes": [*corpus.notes, *([f"{padding} dashes end the haystack"] if padding else [])],
    }
    return Sample(
        point=point,
        messages=messages,
        target=target,
        choices=choices,
        answer_prefix=answer_prefix,
        placed=draft.placed,
        n_tokens=n_tokens,
        tokenizer=tokenizer.name,
        extra=facts | dict(extra or {}) | ({} if proven else UNPROVEN),
    )


def _adjusted(corpus: Corpus, tokenizer: Tokenizer, window: Window, padding: int, missing: int) -> tuple[Window, int]:
    """The window with its end moved by `missing` tokens; what no cut can give is padded."""
    cost = max(1, count(tokenizer, PAD * 8) // 8)
    missing += padding * cost
    moved = move_end(corpus.cuts, window, missing)
    left = missing - int(corpus.cuts.counts[moved.end] - corpus.cuts.counts[window.end])
    return moved, left // cost if left > TOLERANCE - AIM else 0


def _infeasible(point: Point, reserve: int, n_frame: int, n_needles: int, wanted: int, smallest: int) -> InfeasibleCell:
    minimum = point.length - wanted + smallest
    return InfeasibleCell(
        f"length {point.length:,} of task {point.task!r} cannot hold {n_frame:,} tokens of question and template, "
        f"{n_needles:,} of needles, {reserve:,} reserved for the answer and {smallest} of haystack",
        minimum=minimum,
    )


def frame_of(tokenizer: Tokenizer, head: str, tail: str, answer_prefix: str, n_head: int | None = None) -> Frame:
    """What stands around the haystack once the chat template is applied.

    Args:
        n_head: tokens of `head`, where its maker knows them: only its join with the template is counted then.
    """
    rendered = tokenizer.render((Message(role="user", content=head + _MARK + tail),), answer_prefix)
    prefix, mark, suffix = rendered.partition(_MARK)
    if not mark or _MARK in suffix:
        raise ConfigError(
            f"the chat template of {tokenizer.name!r} does not write the user's message exactly once; "
            f"name another tokenizer with --tokenizer"
        )
    if n_head is None or not prefix.endswith(head):
        n_prefix = count(tokenizer, prefix)
    else:
        before = prefix[: len(prefix) - len(head)]
        n_prefix = count(tokenizer, before) + n_head + join_cost(tokenizer, before, head)
    return Frame(prefix=prefix, suffix=suffix, n_tokens=n_prefix + count(tokenizer, suffix))


def _window(
    corpus: Corpus,
    n_tokens: int,
    depths: Sequence[float],
    anchor: int,
    unwanted: Sequence[str],
    rng: random.Random,
    before: Window | None,
    every_depth: bool,
    span: int | None,
) -> Window:
    """A window whose text holds none of `unwanted`, from the same start as the one `before`."""
    found = ""
    start = before.start if before else None
    for _ in range(WINDOWS):
        if start is None and span is not None:
            start = draw_start(corpus, span, rng)
        window = choose(
            corpus, n_tokens, depths, rng, start, anchor, every_depth=every_depth, keeps_start=span is not None
        )
        if window is None:
            raise DataError(f"haystack {corpus.spec!r} cannot be cut into {n_tokens:,} tokens; choose another text")
        low, high = edges(corpus, window)
        found = first_present(corpus, low, high, unwanted)
        if not found:
            return window
        start = None
    raise DataError(
        f"each of {WINDOWS} windows of {n_tokens:,} tokens from haystack {corpus.spec!r} holds {found!r}, which the "
        f"task must hide there; choose another text with --corpus, or another --seed"
    )
