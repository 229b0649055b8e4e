"""`longreach check`: does this endpoint take what we send?"""

import json
from typing import Annotated

import typer


def add_check_command(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("check")(_check)


def _check(
    model: Annotated[str, typer.Option(help="scheme:name, such as openai:NAME.")],
    base_url: Annotated[str | None, typer.Option(help="Address of the server, up to and including /v1.")] = None,
    model_args: Annotated[str | None, typer.Option(help="Options of the model: k=v,k=v.")] = None,
    max_length: Annotated[str | None, typer.Option(help="Longest canary (default: the window, else 32k).")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="As in `run`.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="HTTP header K=V. May be repeated.")] = None,
    extra_body: Annotated[str | None, typer.Option(help="JSON merged into each request.")] = None,
    chat_template_kwargs: Annotated[str | None, typer.Option(help="JSON for the chat template.")] = None,
    reasoning_budget: Annotated[int, typer.Option(help="Tokens for reasoning on top of the answer's.", min=0)] = 0,
    temperature: Annotated[float, typer.Option(help="Sampling temperature.", min=0.0)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Send canaries: window, truncation, template, usage, streaming, parameters. Exit 0, or 4 if prompts are cut."""
    from longreach.harness.running.check_model import check_model
    from longreach.harness.running.check_text import finding_lines
    from longreach.harness.running.options import Options

    options = Options.of(
        tasks=["niah.single"],
        lengths="4k",
        model=model,
        base_url=base_url,
        model_args=model_args,
        tokenizer=tokenizer,
        header=header,
        extra_body=extra_body,
        chat_template_kwargs=chat_template_kwargs,
        reasoning_budget=reasoning_budget,
        temperature=temperature,
    )
    found = check_model(options, max_length)
    if as_json:
        typer.echo(json.dumps(found.to_dict() | {"facts": found.facts}, ensure_ascii=False, indent=2))
    else:
        for line in finding_lines(found):
            typer.echo(line)
    raise typer.Exit(4 if found.truncated is not None else 0)
