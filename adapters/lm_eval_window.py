"""What a backend of lm-eval takes before it cuts: lm-eval shortens long prompts from the left and scores what is left.

Read in lm-eval 0.4.13: models/api_models.py (`max_length` 2048 unless given, less 1; token requests are cut, text and chat
requests are not), models/huggingface.py and vllm_causallms.py (the model's own length).
"""

from collections.abc import Mapping
from typing import Any

from longreach.harness.errors import ConfigError

API_DEFAULT = 2048  # api_models.py: max_length of every model behind an address
_STATED = ("max_length", "max_model_len", "context_length", "n_ctx")
"""Model arguments that state a window: hf and the API models, vllm, sglang, ours."""
_OF_CONFIG = ("n_positions", "max_position_embeddings", "n_ctx")  # utils.resolve_max_length


def window_of(lm: Any, args: Mapping[str, Any]) -> int | None:
    """Tokens of prompt and answer that the backend takes whole; None = it cuts nothing, or nobody knows.

    Args:
        lm: the backend, if it can be had: lm-eval hands it to tasks only with a chat template.
        args: its model arguments.

    Raises:
        ConfigError: a stated window that is no number.
    """
    stated = _stated(args)
    if lm is not None and hasattr(lm, "tokenized_requests"):
        return int(lm.max_length) if lm.tokenized_requests else stated
    if lm is not None:
        known = getattr(lm, "max_length", None)
        return int(known) if isinstance(known, int | float) else stated
    if args.get("base_url"):
        if not _sends_tokens(args):
            return stated
        return (stated or API_DEFAULT) - 1
    return stated or _of_folder(args.get("pretrained"))


def _sends_tokens(args: Mapping[str, Any]) -> bool:
    """Whether a model behind an address gets token ids, which lm-eval cuts, and not text."""
    is_text = str(args.get("tokenized_requests", True)) == "False"
    return not is_text and str(args.get("tokenizer_backend", "")).lower() != "none"


def _stated(args: Mapping[str, Any]) -> int | None:
    for name in _STATED:
        if args.get(name) is not None:
            try:
                return int(args[name])
            except (TypeError, ValueError) as error:
                raise ConfigError(f"--model_args {name}: {args[name]!r} is not a number of tokens") from error
    return None


def _of_folder(source: object) -> int | None:
    """The length in the config of a transformers model, as the backend reads it."""
    if not isinstance(source, str):
        return None
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(source)
    except (OSError, ValueError):
        return None  # not a model of transformers, such as a GGUF file
    config = config.get_text_config()
    return next((int(value) for name in _OF_CONFIG if (value := getattr(config, name, None)) is not None), API_DEFAULT)


def check_fits(doc: Mapping[str, Any], n_answer: int, window: int | None) -> None:
    """Stops before a prompt is cut.

    Raises:
        ConfigError: the prompt and its answer do not fit, or the count is only an estimate and comes near.
    """
    if window is None:
        return
    need = doc["n_tokens"] + n_answer
    where = f"{doc['label']} at {doc['length']:,} tokens"
    mend = (
        f"raise the window to {need + 1:,} or more if the model has it (--model_args max_length=N; max_model_len=N for "
        f"""vllm), or take shorter lengths (--metadata '{{"lengths": "4k,8k"}}')"""
    )
    if need > window:
        raise ConfigError(
            f"{where} needs {doc['n_tokens']:,} prompt tokens and {n_answer:,} for the answer, but this backend takes "
            f"{window:,} and would cut the prompt from the left without a word; {mend}"
        )
    if doc["is_estimate"] and 1.5 * doc["n_tokens"] + n_answer > window:
        raise ConfigError(
            f"{where} is counted by a fallback tokenizer and may exceed the window of {window:,}, above which this backend "
            f"cuts prompts without a word; name the model's tokenizer (--metadata tokenizer=PATH), or {mend}"
        )
