"""The price tag before the bill: what is cached, what is asked on top, what ends it."""

from pathlib import Path
from typing import Any

import pytest

import longreach
from longreach.harness.running.forecast import forecast_lines
from longreach.harness.running.options import Options
from longreach.harness.running.prepare import prepare

GRID = {"tasks": "niah.single", "lengths": "4k", "depths": "0.5", "samples": 10}
PRICES = {"price_in": 2.0, "price_cached": 0.2, "price_out": 10.0}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def tell(model: str = "openai:m", **options: Any) -> list[str]:
        url = {"base_url": "http://127.0.0.1:9/v1"} if model.startswith("openai") else {}
        given = Options.of(**(GRID | PRICES | url | options), model=model, out=tmp_path / "a")
        return list(forecast_lines(prepare(given)))

    return tell


def test_a_range_reaches_from_cached_to_uncached(told: Any) -> None:
    # 10 prompts of 4096 - 48 tokens and answers of 48: 40,480 x 0.2 and 40,480 x 2 + 480 x 10, USD per million.
    lines = told()
    assert "0.0081 - 0.0858" in lines[2]
    assert any(line.startswith("USD: from all prompt tokens cached") for line in lines)


def test_needles_without_their_answer_are_told_and_do_not_stop_a_plan(told: Any, tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("needle,question,answer\nThe code is 12.,What is the code?,99\nThe cook is Ada.,Who cooks?,Ada\n")
    lines = told(needles=str(path))
    assert f"warning: needle file {path}: no accepted answer stands in needle 1: it has to be inferred" in lines


def test_nothing_is_cached_in_a_cold_run(told: Any) -> None:
    lines = told(cold=True)
    assert "0.0810 - 0.0858" in lines[2]
    assert any(line.startswith("USD: from no prompt token cached (--cold)") for line in lines)


def test_what_is_asked_besides_the_samples_and_the_caps_are_told(told: Any) -> None:
    text = "\n".join(told(judge="openai:j", max_cost=0.5, max_tokens="2M"))
    assert "on top: 3 requests, and up to 6 where no tokens are reported" in text
    assert "the longest has 4k" in text
    assert "on top: the judge openai:j, at most" in text
    assert "stops before --max-cost 0.5 or --max-tokens 2,097,152 is passed, requests in flight counted" in text


def test_canaries_that_were_sent_are_not_told_again(told: Any, server: Any, fault_server: Any, tmp_path: Path) -> None:
    server.oracle = fault_server.Oracle(solve=lambda text: "1")
    longreach.run(**(GRID | PRICES), model="openai:m", base_url=server.url, force=True, out=tmp_path / "a")
    assert not any(line.startswith("on top") for line in told(base_url=server.url, samples=12))
    assert any(line.startswith("on top") for line in told(base_url=server.url, lengths="4k,8k"))


def test_a_simulated_model_is_asked_nothing_on_top(told: Any) -> None:
    assert not any(line.startswith(("on top", "stops")) for line in told("sim:perfect"))
