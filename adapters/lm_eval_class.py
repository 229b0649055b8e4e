"""The task class that lm-eval runs (0.4.13 and newer): docs are recipes, text is made when requests are built.

`longreach export lm-eval DIR` writes the YAML that names this class; `lm_eval_tasks.tasks` makes the objects for
`simple_evaluate`. This module imports lm_eval; nothing of ours imports it before lm-eval runs.
"""

import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean
from lm_eval.api.task import Task as LmEvalTask
from lm_eval.config.task import TaskConfig
from lm_eval.filters import build_filter_ensemble

from longreach.adapters import bridge
from longreach.adapters.lm_eval_tokenizer import choose_tokenizer
from longreach.adapters.lm_eval_window import check_fits, window_of
from longreach.adapters.options import read_flag
from longreach.harness.errors import ConfigError
from longreach.harness.sample import Message, Sample
from longreach.harness.tokenizer import Tokenizer, WithSystem, join_contents

log = logging.getLogger("lm_eval.longreach")
_SHORT = "[prompt left out, sha256 {}; --metadata log_prompts=true keeps it]"


class LongreachTask(LmEvalTask):  # type: ignore[misc]  # lm_eval is optional, so it has no types
    """One of our tasks inside lm-eval.

    Args:
        config: the YAML: `task` (name in lm-eval), `longreach` (the recipe), and `metadata`, to which lm-eval adds the model
            arguments and what the user gave as --metadata: lengths (or max_seq_lengths), depths, samples, prompt_seed,
            tokenizer, reasoning_budget, prefill, log_prompts.
    """

    OUTPUT_TYPE = "generate_until"

    def __init__(self, config: Mapping[str, Any]) -> None:
        name = str(config["task"])
        where = f"--metadata of {name}"
        self._args = dict(config.get("metadata") or {})
        given = {
            key: self._args[key] for key in ("lengths", "max_seq_lengths", "depths", "samples") if key in self._args
        }
        given |= {"seed": self._args.get("prompt_seed"), "reasoning_budget": self._args.get("reasoning_budget")}
        self.recipe = bridge.changed(bridge.recipe_of(config["longreach"], f"task {name}"), given, where)
        self._task = self.recipe.open()
        self._log_prompts = read_flag(self._args.get("log_prompts", False), f"{where}, log_prompts")
        self._prefill = read_flag(self._args.get("prefill", False), f"{where}, prefill")
        self._system: str | None = None
        self._lm: Any = None
        self._instances: list[Any] | None = None
        self._filters = [build_filter_ensemble("none", [["take_first", None]])]
        self.VERSION = self._task.info.version
        self._config = TaskConfig(
            task=name,
            output_type="generate_until",
            num_fewshot=0,
            repeats=1,
            generation_kwargs={
                "until": [],
                "max_gen_toks": self._task.info.reserve + self.recipe.reasoning_budget,
                "do_sample": False,
                "temperature": 0.0,
            },
            metadata={
                "version": self.VERSION,
                "longreach": bridge.recipe_data(self.recipe),
                "config_source": self._args.get("config_source"),
            },
        )

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """By which lengths are counted; the log says which one it is and why."""
        tokenizer, spec, why = choose_tokenizer(self._args, self.recipe.tokenizer, self._lm)
        self._config.metadata |= {"tokenizer": tokenizer.name, "tokenizer_spec": spec}
        log.info("%s: lengths are counted by %s (%s)", self.task_name, tokenizer.name, why)
        if tokenizer.is_estimate:
            log.warning(
                "%s: lengths are only estimated; name the model's tokenizer: --metadata tokenizer=PATH", self.task_name
            )
        return tokenizer

    @property
    def _counting(self) -> Tokenizer:
        return WithSystem(self.tokenizer, self._system) if self._system else self.tokenizer

    @cached_property
    def _docs(self) -> list[dict[str, Any]]:
        window = window_of(self._lm, self._args)
        points, left = bridge.points(self.recipe, self._task, self._counting, window)
        for line in left:
            log.warning("%s", line)
        spec = self._config.metadata["tokenizer_spec"]
        docs = [bridge.doc_of(point, self.recipe, self._task, self._counting) for point in points]
        return [doc | {"tokenizer_spec": spec} for doc in docs]

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return True

    def test_docs(self) -> list[dict[str, Any]]:
        return self._docs

    def build_all_requests(
        self,
        *,
        chat_template: Callable[..., Any] | None = None,
        system_instruction: str | None = None,
        **options: Any,
    ) -> None:
        """All prompts, checked against the window before any is sent.

        Raises:
            ConfigError: the backend would cut a prompt. InfeasibleCell: a length that was asked for cannot be built.
        """
        self._lm = getattr(chat_template, "__self__", None)
        self._system = system_instruction
        if chat_template is None and self.tokenizer.knows_template:
            log.warning(
                "%s: the tokenizer has a chat template; --apply_chat_template makes lm-eval use it", self.task_name
            )
        super().build_all_requests(chat_template=chat_template, system_instruction=system_instruction, **options)

    def fewshot_context(
        self,
        doc: dict[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        chat_template: Callable[..., Any] | None = None,
        **_: Any,
    ) -> Any:
        """The prompt of one doc as the backend takes it: text, or a conversation in the backend's own form."""
        sample = bridge.build(doc, self._task, self._counting)
        check_fits(doc, self._n_answer, window_of(self._lm, self._args))
        system = (Message(role="system", content=system_instruction),) if system_instruction else ()
        messages = (*system, *sample.messages)
        if chat_template is None:
            return join_contents(messages, sample.answer_prefix)
        turns = [{"role": message.role, "content": message.content} for message in messages]
        text = chat_template(turns, add_generation_prompt=True)
        if not sample.answer_prefix:
            return text
        if isinstance(text, str):
            return text + sample.answer_prefix
        if not self._prefill:
            raise ConfigError(
                f"task {self.recipe.label!r} starts the answer itself; say --metadata prefill=true if this server goes on "
                f"from a last assistant message, or take the task out"
            )
        return chat_template(
            [*turns, {"role": "assistant", "content": sample.answer_prefix}], add_generation_prompt=False
        )

    @property
    def _n_answer(self) -> int:
        """Tokens that the backend keeps free for the answer; --gen_kwargs may have changed them."""
        return int(self._config.generation_kwargs.get("max_gen_toks", self._task.info.reserve))

    def doc_to_text(self, doc: dict[str, Any]) -> str:
        return join_contents(self._sample(doc).messages)

    def doc_to_target(self, doc: dict[str, Any]) -> list[str]:
        return list(doc.get("target") or self._sample(doc).target)

    def doc_to_prefix(self, doc: dict[str, Any]) -> str:
        return ""

    def _sample(self, doc: dict[str, Any]) -> Sample:
        return bridge.build(doc, self._task, self._counting)

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **options: Any) -> Any:
        arguments = (ctx, deepcopy(self._config.generation_kwargs))
        return Instance(
            request_type=self.OUTPUT_TYPE, doc=doc, arguments=arguments, idx=0, metadata=options["metadata"]
        )

    def apply_filters(self) -> None:
        """After the answers and before the log: prompts are let go, so that neither memory nor the log holds them all."""
        super().apply_filters()
        if not self._log_prompts:
            for instance in self._instances or ():
                short = _SHORT.format(instance.doc.get("prompt_sha256", "unknown"))
                instance.arguments = (short, *instance.arguments[1:])

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, float]:
        """`score` and `score@LENGTH`; the doc takes what else a log should hold: outcome, parts, extracted."""
        graded = bridge.grade(self._task, self._sample(doc), str(results[0]))
        score = graded.score
        doc |= {"outcome": graded.outcome, "parts": dict(score.parts), "extracted": score.extracted}
        found = {"score": score.value, f"score@{doc['length']}": score.value}
        return found if score.published is None else found | {"score_published": score.published}

    @property
    def _metrics(self) -> list[str]:
        lengths = sorted({doc["length"] for doc in self._docs})
        return ["score", "score_published", *(f"score@{length}" for length in lengths)]

    def aggregation(self) -> dict[str, Callable[..., float]]:
        return dict.fromkeys(self._metrics, mean)

    def higher_is_better(self) -> dict[str, bool]:
        return dict.fromkeys(self._metrics, True)
