"""Our tasks inside lm-eval from Python: `simple_evaluate(model=..., tasks=tasks("niah.single", lengths="4k,8k"))`.

    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager
    from longreach.adapters.lm_eval_tasks import tasks

    simple_evaluate(
        model="hf", model_args={"pretrained": "path"}, apply_chat_template=True, bootstrap_iters=0,
        tasks=tasks("niah.single", "ruler.vt", lengths="4k,8k", samples=5, model_args={"pretrained": "path"}),
        task_manager=TaskManager(include_defaults=False),
    )

From lm-eval's command line the same tasks come out of the folder that `longreach export lm-eval DIR` writes.
"""

import re
from collections.abc import Mapping
from typing import Any

from longreach.adapters import bridge
from longreach.harness.errors import ConfigError, MissingExtra

INSTALL = "pip install 'longreach[lm-eval]'"


def lm_eval_name(*parts: str) -> str:
    """Name of a task or group in lm-eval.

    >>> lm_eval_name("quick", "niah.single"), lm_eval_name("niah.multi[needles=4]")
    ('longreach_quick_niah_single', 'longreach_niah_multi_needles_4')
    """
    return "_".join(["longreach", *(re.sub(r"[^A-Za-z0-9]+", "_", part).strip("_") for part in parts)])


def tasks(
    *names: str,
    lengths: Any = None,
    depths: Any = None,
    samples: Any = None,
    seed: int = 42,
    tokenizer: str | None = None,
    reasoning_budget: int = 0,
    params: Mapping[str, Mapping[str, Any]] | None = None,
    model_args: Mapping[str, Any] | None = None,
    prefill: bool = False,
    log_prompts: bool = False,
) -> list[Any]:
    """Task objects for `simple_evaluate`.

    Args:
        names: registered tasks, such as niah.single.
        lengths: tokens of prompt and answer, a list or `4k,8k`; default 4k to 32k.
        samples: per length and depth, a number or {length: number}.
        tokenizer: SPEC by which lengths are counted; default the one of the model arguments.
        params: task -> parameter -> value.
        model_args: those given to `simple_evaluate`, which does not hand them to task objects: from them come the
            tokenizer and the window above which a backend would cut.
        prefill: the server goes on from a last assistant message.
        log_prompts: keep whole prompts in lm-eval's log.

    Raises:
        MissingExtra: lm-eval is not installed. UnknownName, ConfigError: a name or value that makes no sense.
    """
    try:
        from longreach.adapters.lm_eval_class import LongreachTask
    except ModuleNotFoundError as error:
        raise MissingExtra(f"tasks for lm-eval need lm-eval 0.4.13 or newer ({error}); run: {INSTALL}") from error
    if not names:
        raise ConfigError("name at least one task, such as tasks('niah.single'); `longreach tasks` lists them")
    given = {"lengths": lengths, "depths": depths, "samples": samples, "seed": seed, "tokenizer": tokenizer}
    given["reasoning_budget"] = reasoning_budget
    found = []
    for name in names:
        plain = bridge.Recipe(task=name, label=name, params=dict((params or {}).get(name, {})))
        recipe = bridge.changed(plain, given, f"task {name!r}")
        metadata = {**(model_args or {}), "prefill": prefill, "log_prompts": log_prompts}
        data = bridge.recipe_data(recipe)
        found.append(LongreachTask(config={"task": lm_eval_name(name), "longreach": data, "metadata": metadata}))
    return found
