"""A model that knows one thing: it repeats the first three-digit number of its prompt."""

import re
from collections.abc import Mapping
from typing import Any

from longreach import Request, Response
from longreach.harness.model import Price
from longreach.harness.tokenizer import Tokenizer, WordsTokenizer


class Librarian:
    """Everything that a model must have; a real one would call its server in `generate`."""

    window: int | None = None
    concurrency = 4
    simulated = False
    price = Price()
    facts: Mapping[str, Any] = {"kind": "program"}

    def __init__(self, name: str) -> None:
        self.name = f"librarian:{name}"
        self.tokenizer: Tokenizer = WordsTokenizer()

    async def generate(self, request: Request) -> Response:
        found = re.search(r"\b\d{3}\b", request.messages[-1].content)
        return Response(text=found[0] if found else "I cannot find it.", n_prompt_tokens=request.n_tokens)

    async def close(self) -> None:
        return None


def open_model(rest: str, **options: Any) -> Librarian:
    return Librarian(rest or "junior", **options)
