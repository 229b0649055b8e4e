"""The exception tree.

LongreachError                 a message for the user: what, where, how to mend it
├── ConfigError                exit 2: usage or configuration
│   ├── UnknownName            a task, model, battery, tokenizer or haystack that does not exist
│   ├── MissingExtra           an optional package is needed; the message holds the install line
│   ├── BatteryError           a battery file, or flags that do not fit together
│   ├── DataError              a corpus or needle file that cannot be used
│   └── InfeasibleCell         a prompt of this length cannot hold the needles and the question
├── RunFolderError             exit 2: the run folder is locked, damaged, or belongs to another configuration
└── ModelError                 one request went wrong; `transient` ones are tried again
    ├── ContextOverflow        the server says that the prompt does not fit: outcome `overflow`
    ├── PromptTooLarge         a byte or character limit in front of the model: outcome `overflow`, worded apart
    ├── ContentFiltered        a policy block: outcome `refused`
    └── ModelUnusable          exit 4: unreachable, wrong key, no quota, unknown model, truncating server
"""

from collections.abc import Mapping
from types import MappingProxyType


class LongreachError(Exception):
    """Root of all errors that are shown to the user as one line."""

    exit_code = 2


class ConfigError(LongreachError):
    """Usage or configuration is wrong; nothing was sent."""


class UnknownName(ConfigError):
    """A name that nothing is registered under."""


class MissingExtra(ConfigError):
    """An optional dependency is not installed."""


class BatteryError(ConfigError):
    """A battery file or its overrides do not make sense."""


class DataError(ConfigError):
    """A corpus, needle file or data set cannot be used."""


class InfeasibleCell(ConfigError):
    """The asked length cannot hold what the task must say.

    Args:
        reason: what it cannot hold.
        minimum: the shortest length that might (tokens); the message ends with it.
    """

    def __init__(self, reason: str, *, minimum: int | None = None) -> None:
        hint = f"; the shortest length that can is about {minimum:,}" if minimum is not None else ""
        super().__init__(reason + hint)
        self.reason = reason
        self.minimum = minimum


class RunFolderError(LongreachError):
    """The run folder cannot be used as asked; nothing in it was changed."""


class ModelError(LongreachError):
    """One request failed.

    Args:
        transient: worth trying again (rate limit, time-out, broken stream, 5xx).
        retry_after_s: seconds that the server asked to wait, if it did.
        status: HTTP status, if there was one.
        rates: what the endpoint said about its limits: tokens_limit, tokens_left, tokens_reset_s, and for requests.
    """

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
        rates: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after_s = retry_after_s
        self.status = status
        self.rates = rates


class ContextOverflow(ModelError):
    """The prompt and its answer do not fit the window, says the server or the model."""


class PromptTooLarge(ModelError):
    """The request body is larger than something in front of the model takes; says nothing about the window."""


class ContentFiltered(ModelError):
    """The request was blocked by a policy."""


class ModelUnusable(ModelError):
    """No request to this model can succeed as things are."""
