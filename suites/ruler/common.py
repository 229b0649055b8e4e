"""What RULER's tasks have in common: source, parameters, and in what all of ours differ."""

SOURCE = "RULER (Hsieh et al. 2024, arXiv 2404.06654), NVIDIA/RULER c3f5e3b"
VARIANTS = ("head", "2024")

COMMON_DEPARTURES = (
    (
        "The answer prefix ends the user's message, as in RULER's own client for chat servers; prefill=true puts it at the "
        "start of the assistant's turn."
    ),
    (
        "The length (prompt with template and prefix, plus the reserve) is met within 8 tokens; RULER falls short by up to a "
        "whole step."
    ),
    "Random choices come from the sample's own seed, so that item i asks the same question at every length.",
    (
        "The headline score is strict: all that is asked for and nothing wrong. RULER's rule, which never punishes extra "
        "text, is `score_published`."
    ),
)


def check_common(variant: str, prefill: object, reserve: object) -> None:
    """Raises ValueError for a parameter that no task of RULER's has."""
    if str(variant) not in VARIANTS:
        raise ValueError(f"variant {variant!r} is not one of {', '.join(VARIANTS)}")
    if prefill not in (True, False):
        raise ValueError(f"prefill {prefill!r} is neither true nor false")
    if not isinstance(reserve, int) or isinstance(reserve, bool) or reserve < 1:
        raise ValueError(f"reserve {reserve!r} is not a number of tokens")
