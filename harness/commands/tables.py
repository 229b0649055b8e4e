"""`longreach effective`: effective lengths of a table of published scores."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def add_table_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    app.command("effective")(effective)


def effective(
    table: Annotated[Path, typer.Argument(help="CSV: a column `model` and columns such as 4k or score_4k.")],
    definition: Annotated[
        str, typer.Option(help="ruler | nolima | absolute | largest_passing", show_default=True)
    ] = "ruler",
    threshold: Annotated[
        float | None, typer.Option(help="Score to reach, for absolute and largest_passing; on the table's scale.")
    ] = None,
    base_column: Annotated[str | None, typer.Option(help="Column of the base score, for nolima.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Effective lengths of published scores, and whether they are what the table prints."""
    from longreach.harness.data import read_text_file
    from longreach.harness.errors import ConfigError
    from longreach.harness.stats.effective import DEFINITIONS
    from longreach.harness.stats.published import read_table

    if definition not in DEFINITIONS:
        raise ConfigError(f"there is no definition {definition!r}; use {', '.join(DEFINITIONS)}")
    text, _ = read_text_file(table)
    rows = read_table(text, definition, threshold=threshold, base_column=base_column, source=str(table))
    if as_json:
        typer.echo(json.dumps([_as_json(row) for row in rows], ensure_ascii=False, indent=2))
        return
    width = max(len(row.name) for row in rows)
    for row in rows:
        typer.echo("  ".join(part for part in (row.name.ljust(width), *_columns(row)) if part).rstrip())
    known = [row for row in rows if row.agrees is not None]
    if known:
        agreeing = sum(bool(row.agrees) for row in known)
        typer.echo(f"\n{agreeing} of {len(known)} printed effective lengths follow from the scores ({definition})")
    averaged = [row for row in rows if row.averages]
    wrong = {row.name: row.wrong_averages for row in averaged if row.wrong_averages}
    if averaged:
        typer.echo(f"{len(averaged) - len(wrong)} of {len(averaged)} rows of printed averages follow from the scores")
    for name, averages in wrong.items():
        told = "; ".join(
            f"{column} is printed {was:g}, and is {found:.1f}" for column, (was, found) in averages.items()
        )
        typer.echo(f"  {name}: {told}")


def _columns(row: Any) -> tuple[str, ...]:
    """Effective length, what the table prints where that differs, and what there is to be said."""
    found = (row.text or f"not stated: {row.problem}").ljust(6)
    notes = row.estimate.notes if row.estimate else ()
    if row.agrees is False and row.text:
        deciding = ", ".join(f"{length // 1024 or length}K {score:g}" for length, score in row.deciding)
        return (found, f"the table prints {row.printed} (needs {row.estimate.threshold:.4g}; {deciding})", *notes)
    return (found, *notes)


def _as_json(row: Any) -> dict[str, Any]:
    return {
        "line": row.line,
        "model": row.name,
        "effective_length": row.estimate.to_dict() if row.estimate else None,
        "text": row.text,
        "printed": row.printed or None,
        "agrees": row.agrees,
        "problem": row.problem or None,
        "averages": {
            name: {"printed": printed, "follows": round(found, 3)} for name, (printed, found) in row.averages.items()
        },
    }
