"""From a sample and the user's settings to the request that is sent."""

from longreach.harness.model import Request
from longreach.harness.running.plan import Item, Plan
from longreach.harness.running.resolve import Settings
from longreach.harness.running.salt import fresh_salt, salted
from longreach.harness.sample import Message, Sample
from longreach.harness.tokenizer import Tokenizer


def make_request(
    item: Item, sample: Sample, plan: Plan, settings: Settings, tokenizer: Tokenizer, *, simulated: bool
) -> Request:
    """What the model is asked; the answer key goes along only where the model is simulated."""
    system = (Message(role="system", content=settings.system),) if settings.system else ()
    messages = (*system, *sample.messages)
    return Request(
        messages=salted(messages, fresh_salt(tokenizer)) if settings.cold else messages,
        answer_prefix=sample.answer_prefix,
        max_new_tokens=plan.tasks[item.label].task.info.reserve + settings.reasoning_budget,
        temperature=settings.temperature,
        top_p=settings.top_p,
        # Some servers refuse a seed, and greedy decoding needs none.
        seed=int(item.point.key[:7], 16) if settings.temperature > 0 else None,
        n_tokens=sample.n_tokens,
        options=tuple(sample.extra.get("options", ())),
        key=settings.key(item.point),
        sample=sample if simulated else None,
    )
