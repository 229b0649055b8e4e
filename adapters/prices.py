"""List prices of hosted models, from the package `genai-prices` (its own snapshot; nothing is downloaded).

Only where the address is that of a known provider: the same model on a server of one's own has no list price.
"""

from longreach.harness.model import Price


def list_price(model: str, base_url: str) -> Price:
    """USD per million tokens; unknown (None) where the provider or the model is not in the list.

    Of prices that step up with the length of the prompt the dearest step counts, so that a cap is never passed.
    """
    from genai_prices import Usage, calc_price

    try:
        known = calc_price(
            Usage(input_tokens=1, output_tokens=1), model_ref=model, provider_api_url=base_url
        ).model_price
    except (LookupError, ValueError):
        return Price()
    return Price(
        input=_dearest(known.input_mtok), cached=_dearest(known.cache_read_mtok), output=_dearest(known.output_mtok)
    )


def _dearest(price: object) -> float | None:
    """A flat price, or the highest of its steps."""
    if price is None:
        return None
    steps = [getattr(step, "price", None) for step in getattr(price, "tiers", ())]
    known = [value for value in (getattr(price, "base", price), *steps) if value is not None]
    return max(float(str(value)) for value in known)
