"""`longreach card`, `rescore` and `verify`: run folders that exist already."""

from pathlib import Path
from typing import Annotated

import typer

from longreach.harness.commands.options import path_option

_Folder = Annotated[Path, typer.Argument(help="Run folder.")]
_PUBLISH = "Into your own repository (nothing is pushed)"


def add_folder_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    app.command("card")(_card)
    app.command("rescore")(_rescore)
    app.command("verify")(_verify)


def _card(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", metavar="RUN...")],
    out: Annotated[Path | None, path_option("Folder of a card that several runs share.")] = None,
    baseline: Annotated[Path | None, path_option("Run folder that the card compares this run with.")] = None,
    template: Annotated[
        list[Path] | None,
        typer.Option(help="Your own Jinja template, such as short.md.j2; written beside the card as short.md."),
    ] = None,
    readme: Annotated[
        Path | None,
        path_option("README that gets the card between its markers.", rich_help_panel=_PUBLISH),
    ] = None,
    metadata: Annotated[
        bool,
        typer.Option("--metadata", help="Also model-index results in its front matter.", rich_help_panel=_PUBLISH),
    ] = False,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            help="TASK=ORG/DATASET: also .eval_results/*.yaml beside the README, for this benchmark.",
            rich_help_panel=_PUBLISH,
        ),
    ] = None,
) -> None:
    """(Re)write results.csv, the card, its figures and the notebook from the stored records.

    Several runs of one model become one card in --out: a sample that two of them hold counts once (an answer beats a
    failure, the later answer beats the earlier). Runs of several models become a comparison.
    """
    from longreach.harness.running.publish import Wishes, publish

    wishes = Wishes.of(template or (), readme=readme, metadata=metadata, benchmarks=benchmark or ())
    for line in publish(runs, out, wishes, _say, baseline):
        typer.echo(line)


def _say(text: str) -> None:
    typer.echo(f"longreach: {text}", err=True)


def _rescore(run: _Folder) -> None:
    """Score stored answers again; nothing is sent."""
    from longreach.harness.running.revisit import rescore

    n, changed = rescore(run, _say)
    typer.echo(f"{n} answers scored again, {changed} scores changed", err=True)
    typer.echo(str(run / "card.md"))


def _verify(run: _Folder) -> None:
    """Rebuild every prompt from its recipe and compare hashes; exit 1 on a mismatch."""
    from longreach.harness.running.revisit import verify

    n, wrong = verify(run)
    for line in wrong[:20]:
        typer.echo(line)
    typer.echo(f"{n} prompts rebuilt, {len(wrong)} differ")
    raise typer.Exit(1 if wrong else 0)
