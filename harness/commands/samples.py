"""`longreach generate` and `longreach show`: prompts without a model."""

from pathlib import Path
from typing import Annotated

import typer

from longreach.harness.commands.options import SAMPLE_FIELDS, with_options
from longreach.harness.running.options import Options


def add_sample_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    doc = "Write test cases as .json, .jsonl or .parquet; no model is needed."
    app.command("generate")(with_options(_generate, (*SAMPLE_FIELDS, "out"), name="generate", doc=doc))
    app.command("show")(_show)


def _generate(options: Options) -> None:
    from longreach.harness.errors import BatteryError
    from longreach.harness.running.generate import generate

    if options.out is None:
        raise BatteryError("generate needs --out FILE, ending in .json, .jsonl or .parquet")
    n = generate(options, Path(str(options.out)))
    typer.echo(f"{n} cases written to {options.out}", err=True)


def _show(
    task: Annotated[str, typer.Argument(help="Name of a task, as `longreach tasks` lists them.")],
    length: Annotated[
        str | None, typer.Option("--length", "--lengths", help="Prompt + answer tokens; default 4k, of rows their own.")
    ] = None,
    depth: Annotated[float, typer.Option("--depth", "--depths", help="Where the needle starts, 0 to 1.")] = 0.5,
    index: Annotated[int, typer.Option(help="Number of the sample in its cell, or of the row.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Seed.")] = 42,
    parameter: Annotated[list[str] | None, typer.Option("--set", help="A task parameter: task.param=value.")] = None,
    corpus: Annotated[str | None, typer.Option(help="Haystack, as in `run`.")] = None,
    needles: Annotated[str | None, typer.Option(help="Your own needles, as in `run`.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="As in `run`.")] = None,
    prove: Annotated[str | None, typer.Option(help="As in `run`.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Print one sample: prompt, target, achieved length and depth."""
    from longreach.harness.running.generate import show_lines

    options = Options.of(
        tasks=[task],
        lengths=[length] if length is not None else None,
        depths=[depth],
        samples=index + 1,
        seed=seed,
        set=parameter,
        corpus=corpus,
        needles=needles,
        tokenizer=tokenizer,
        prove=prove,
    )
    for line in show_lines(options, index=index, as_json=as_json):
        typer.echo(line)
