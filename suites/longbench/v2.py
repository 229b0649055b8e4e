"""LongBench v2: 503 questions with four choices on long real texts; loaded, never shipped.

Source: Bai et al. 2024, "LongBench v2" (arXiv 2412.15204); github THUDM/LongBench at 2e00731 (pred.py, result.py); data
`zai-org/LongBench-v2`, split train, Apache-2.0. What differs is in DEPARTURES. Chance is 25%; human experts had 53.7%
within 15 minutes. The published groups short, medium and long count words of the context, not tokens, and their mix of
tasks differs: they are shown as groups, and no effective length is made of them. Checked against the schema as it is
documented, not against the real file: the spelling of sub-domains may differ there, so it is taken as it comes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from longreach.harness.model import Response
from longreach.harness.rows import Check, Row, Types
from longreach.harness.sample import Message, Sample
from longreach.harness.task import FollowUp, Score, TaskInfo
from longreach.suites.loaded import Asked, LoadedTask
from longreach.suites.longbench.letters import LETTERS, published_letter, stated_letter
from longreach.suites.longbench.v2_prompts import filled, template

ANSWER_TOKENS = 128  # LongBench v2, pred.py: max_new_tokens of the direct call, and of the second one
STEPS_TOKENS = 1024  # the same, of the first call with steps
CUT_AT = 120_000  # config/model2maxlen.json: models with 128k
MODES = {"zero_shot": "0shot", "cot": "0shot_cot", "no_context": "0shot_no_context"}
N_ROWS = 503
HUMAN = 0.537
DOMAINS = (
    "Single-Document QA",
    "Multi-Document QA",
    "Long In-context Learning",
    "Long-dialogue History Understanding",
    "Code Repository Understanding",
    "Long Structured Data Understanding",
)
_KNOWN = {name.casefold(): name for name in DOMAINS}
DEPARTURES = (
    (
        "The sentences around the text are ours, in the published layout and with the published answer line; `prompts` takes "
        "the published files."
    ),
    "Decoding is greedy unless --temperature says otherwise; published runs sample at 0.1.",
    (
        "The text is never cut unless over_length=middle; published runs cut the middle of every prompt above the limit of the "
        "model."
    ),
    "An answer without text counts as wrong; the published code drops it from the denominator.",
    (
        "The letter is read by a rule of our own; the published rule's value is `score_published`. Thinking is taken off before "
        "both."
    ),
    "Strings that a tokenizer would take for control tokens are spaced apart.",
)


def _problem(row: Mapping[str, Any]) -> str | None:
    if row["answer"].strip() not in LETTERS:
        return f"has the answer {row['answer'][:20]!r}, which is none of {', '.join(LETTERS)}"
    for name, known in (("difficulty", ("easy", "hard")), ("length", ("short", "medium", "long"))):
        if row[name].strip().lower() not in known:
            return f"has the {name} {row[name][:20]!r}, which is none of {', '.join(known)}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongBenchV2(LoadedTask):
    """Four choices on a long text."""

    columns: ClassVar[Types] = dict.fromkeys(
        (
            *("_id", "domain", "sub_domain", "difficulty", "length", "question"),
            *(f"choice_{letter}" for letter in LETTERS),
            *("answer", "context"),
        ),
        str,
    )
    key: ClassVar[str | None] = "_id"
    hub: ClassVar[str] = "hf:zai-org/LongBench-v2:train"
    policies: ClassVar[tuple[str, ...]] = ("refuse", "skip", "middle")
    check: ClassVar[Check | None] = staticmethod(_problem)

    mode: str = "zero_shot"
    """zero_shot, cot (two calls: steps, then the letter), or no_context (the question without the text)."""
    max_tokens: int = CUT_AT
    """Tokens above which over_length=middle cuts the middle out of the prompt."""
    domains: tuple[str, ...] = ()
    """Only rows of these domains, any case."""
    difficulty: str = ""
    """Only easy or hard rows."""
    words: str = ""
    """Only short, medium or long rows (by words of the context, as published)."""
    prompts: str = ""
    """Folder of the published prompt files; "" = ours."""

    def __post_init__(self) -> None:
        LoadedTask.__post_init__(self)
        if self.mode not in MODES:
            raise ValueError(f"mode {self.mode!r} is not one of {', '.join(MODES)}")
        if self.max_tokens < 2:
            raise ValueError(f"max_tokens {self.max_tokens!r} is not a number of tokens")
        for name, known in (("difficulty", ("easy", "hard")), ("words", ("short", "medium", "long"))):
            if getattr(self, name) not in ("", *known):
                raise ValueError(f"{name} {getattr(self, name)!r} is not one of {', '.join(known)}")
        if unknown := [name for name in self.domains if name.casefold() not in _KNOWN]:
            raise ValueError(f"there is no domain {unknown[0]!r}; one of: {', '.join(DOMAINS)}")

    @property
    def info(self) -> TaskInfo:
        return TaskInfo(
            name="longbench_v2",
            version=1,
            capability="documents",
            family="documents",
            reserve=STEPS_TOKENS if self.mode == "cot" else ANSWER_TOKENS,
            chance=0.25,
            human=HUMAN,
            has_depth=False,
            summary="LongBench v2: four choices on long real texts (data is loaded, not shipped)",
            source="LongBench v2 (Bai et al. 2024, arXiv 2412.15204), THUDM/LongBench 2e00731",
            license="Apache-2.0 (the data, which is not shipped; its texts are of third parties)",
            data_revision=self.data or self.hub,
            departures=DEPARTURES,
        )

    @property
    def cut_above(self) -> int | None:
        return self.max_tokens if self.over_length == "middle" else None

    def keeps(self, row: Row) -> bool:
        data = row.data
        wanted = [name.casefold() for name in self.domains]
        return (
            (not wanted or data["domain"].strip().casefold() in wanted)
            and self.difficulty in ("", data["difficulty"].strip().lower())
            and self.words in ("", data["length"].strip().lower())
        )

    def ask(self, row: Row, part: int) -> Asked:
        data = {name: str(value).strip() for name, value in row.data.items()}
        text, document = filled(template(MODES[self.mode], self.prompts), _slots(data))
        domain = _KNOWN.get(data["domain"].casefold(), data["domain"])
        return Asked(
            messages=(Message(role="user", content=text),),
            target=(data["answer"],),
            choices=tuple(letter for letter in LETTERS if letter != data["answer"]),
            context=document,
            groups={
                "difficulty": data["difficulty"].lower(),
                "length": data["length"].lower(),
                "domain": domain,
                "sub_domain": f"{domain} / {data['sub_domain']}",
            },
            extra={
                "question": data["question"],
                "texts": [data[f"choice_{letter}"] for letter in LETTERS],
                "options": [f"The correct answer is ({letter})" for letter in LETTERS],
                "id": data["_id"],
            },
        )

    def follow_up(self, sample: Sample, first: str) -> FollowUp | None:
        if self.mode != "cot":
            return None
        texts = {f"choice_{letter}": text for letter, text in zip(LETTERS, sample.extra["texts"], strict=True)}
        slots = _slots({"context": "", "question": sample.extra["question"], **texts}) | {"COT": first.strip()}
        text, _ = filled(template("0shot_cot_ans", self.prompts), slots)
        return FollowUp(messages=(Message(role="user", content=text),), reserve=ANSWER_TOKENS)

    def without_context(self) -> "LongBenchV2":
        return replace(self, mode="no_context")

    def score(self, sample: Sample, response: Response) -> Score:
        """1 if the letter that the answer settles on is right. `published`: LongBench v2's rule."""
        right = sample.target[0]
        ours, theirs = stated_letter(response.text, sample.extra["texts"]), published_letter(response.text)
        return Score(
            value=float(ours == right),
            published=float(theirs == right),
            parts={"unparsed": float(ours is None), "unparsed_published": float(theirs is None)},
            extracted=ours,
        )

    def notes(self) -> Iterator[str]:
        n = self.rows().n_all
        if n != N_ROWS:
            yield f"{n:,} rows, not the {N_ROWS} of the published set"


def _slots(data: Mapping[str, str]) -> dict[str, str]:
    slots = {f"C_{letter}": data[f"choice_{letter}"] for letter in LETTERS}
    return slots | {"DOC": data["context"], "Q": data["question"]}


TASKS = (LongBenchV2(),)
