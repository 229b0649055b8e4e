"""List prices: known for a provider's own address, unknown everywhere else, and never guessed."""

import pytest

from longreach.adapters.prices import list_price
from longreach.harness.model import Price
from longreach.harness.registry import open_model


def test_a_hosted_model_has_a_list_price() -> None:
    found = list_price("gpt-4o", "https://api.openai.com/v1")
    assert found.input is not None
    assert found.cached is not None
    assert found.output is not None
    assert 0 < found.cached < found.input < found.output


def test_the_dearest_step_of_a_price_counts() -> None:
    found = list_price("gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai/")
    assert found.input is not None
    assert found.input > 1.25


@pytest.mark.parametrize(
    ("model", "url"), [("gpt-4o", "http://localhost:8000/v1"), ("no-such-model", "https://api.openai.com/v1")]
)
def test_what_is_not_in_the_list_stays_unknown(model: str, url: str) -> None:
    assert list_price(model, url) == Price()


def test_the_model_knows_its_price_by_its_address() -> None:
    assert open_model("openai:gpt-4o", base_url="https://api.openai.com/v1").price.input is not None
    assert open_model("openai:gpt-4o", base_url="http://localhost:8000/v1").price == Price()
