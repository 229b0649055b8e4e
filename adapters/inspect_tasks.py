"""Our tasks in Inspect: `inspect eval longreach/niah_single -T lengths=4k,8k -T tokenizer=hf:PATH --model ...`.

Inspect loads this module by the entry point `inspect_ai`; nothing of ours imports it. A dataset holds recipes, so that a run
has only those prompts in memory that are being asked. Scores are grouped by length.
"""

from dataclasses import replace
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
)
from inspect_ai.scorer import Score, Scorer, Target, grouped, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from longreach.adapters import bridge
from longreach.harness.errors import ConfigError
from longreach.harness.registry import open_tokenizer, tasks
from longreach.harness.tokenizer import Tokenizer

_KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def _default_tokenizer() -> str:
    """cl100k if its file can be had, else the fallback, whose lengths are estimates."""
    try:
        open_tokenizer("tiktoken:cl100k_base").count("a")
    except ConfigError:
        return "words"
    return "tiktoken:cl100k_base"


@solver(name="prompt")  # type: ignore[untyped-decorator]  # inspect_ai is optional, so it has no types
def _prompt(recipe: bridge.Recipe, tokenizer: Tokenizer) -> Solver:
    """Puts the prompt of the sample's recipe in the place of its input."""
    ours = recipe.open()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        built = bridge.build(state.metadata, ours, tokenizer)
        turns: list[ChatMessage] = [_KINDS[message.role](content=message.content) for message in built.messages]
        if built.answer_prefix:
            turns.append(ChatMessageAssistant(content=built.answer_prefix))
        state.messages = turns
        return state

    return solve


@scorer(metrics=[grouped(mean(), "length"), mean(), stderr()], name="longreach")  # type: ignore[untyped-decorator]
def _score(recipe: bridge.Recipe, tokenizer: Tokenizer) -> Scorer:
    """The task's own score, 0 to 1."""
    ours = recipe.open()

    async def score(state: TaskState, target: Target) -> Score:
        doc = dict(state.metadata)
        graded = bridge.grade(ours, bridge.build(doc, ours, tokenizer), state.output.completion)
        more = {"outcome": graded.outcome, "published": graded.score.published, "parts": dict(graded.score.parts)}
        return Score(value=graded.score.value, answer=graded.score.extracted, explanation=graded.text, metadata=more)

    return score


def _make(name: str) -> Any:
    def run(
        lengths: Any = None,
        depths: Any = None,
        samples: Any = None,
        seed: int = 42,
        tokenizer: str | None = None,
        reasoning_budget: int = 0,
        params: dict[str, Any] | None = None,
    ) -> Task:
        given = {"lengths": lengths, "depths": depths, "samples": samples, "seed": seed, "tokenizer": tokenizer}
        given["reasoning_budget"] = reasoning_budget
        plain = bridge.Recipe(task=name, label=name, params=params or {})
        recipe = bridge.changed(plain, given, f"-T of longreach/{name.replace('.', '_')}")
        spec = recipe.tokenizer or _default_tokenizer()
        recipe, ours, counter = replace(recipe, tokenizer=spec), recipe.open(), open_tokenizer(spec)
        points, _ = bridge.points(recipe, ours, counter)
        docs = [bridge.doc_of(point, recipe, ours, counter) for point in points]
        ids = [f"{doc['length']}-{doc['depth']}-{doc['index']}" for doc in docs]
        return Task(
            dataset=MemoryDataset(
                [
                    Sample(id=key, input=f"{name} {key}", target="", metadata=doc)
                    for key, doc in zip(ids, docs, strict=True)
                ],
                name=name,
            ),
            solver=[_prompt(recipe, counter), generate()],
            scorer=_score(recipe, counter),
            config=GenerateConfig(max_tokens=ours.info.reserve + recipe.reasoning_budget, temperature=0.0),
            version=ours.info.version,
            metadata={"longreach": bridge.recipe_data(recipe), "tokenizer": counter.name},
        )

    run.__name__ = run.__qualname__ = name.replace(".", "_")
    run.__doc__ = tasks()[name].info.summary
    return task(run)


for _name in tasks():
    globals()[_name.replace(".", "_")] = _make(_name)
