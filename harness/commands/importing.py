"""`longreach import FORMAT`: results of other tools, one command a format."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from longreach.harness.commands.options import path_option

FORMATS = {
    "lm-eval": "lm-evaluation-harness: results_*.json and samples_*.jsonl (ruler, babilong, longbench, our own tasks).",
    "inspect": "Inspect: .eval or .json logs.",
    "ruler": "RULER: prediction folders and summary.csv.",
    "nolima": "NoLiMa: result files of its own scripts.",
    "longbench-v2": "LongBench v2: prediction files of its own scripts.",
    "mrcr": "MRCR: tables with answer, marker and reply.",
    "needlehaystack": "needlehaystack: one JSON a cell.",
    "vendor": "What a vendor printed: a CSV with task, length, score (or score_percent) and n. Feeds no effective length.",
}


def add_import_commands(imports: typer.Typer) -> None:
    """Registers one command for each format."""
    for name, text in FORMATS.items():
        imports.command(name, help=text)(_command(name))


def _command(tool: str) -> Callable[..., None]:
    def command(
        paths: Annotated[list[Path], typer.Argument(help="Files, or folders that hold them.", metavar="PATH...")],
        out: Annotated[Path, path_option("Run folder to write.")],
        model: Annotated[
            str | None, typer.Option(help="Name of the model here; runs of one model can become one card.")
        ] = None,
    ) -> None:
        from longreach.harness.running.importing import import_results

        found = import_results(tool, paths, out, model=model)
        told = f"{found.n:,} samples" + (f", {found.rows:,} summary rows" if found.rows else "")
        told += (
            f", {found.repeated:,} repeated (an answer beats a failure, the later the earlier)"
            if found.repeated
            else ""
        )
        typer.echo(told, err=True)
        for note in found.notes:
            typer.echo(f"longreach: {note}", err=True)
        if found.not_understood:
            shown = "; ".join(found.not_understood[:5])
            more = f"; {len(found.not_understood) - 5} more in config.yaml" if len(found.not_understood) > 5 else ""
            typer.echo(f"longreach: not understood, left out: {shown}{more}", err=True)
        for line in found.card.verdict_lines()[:9]:
            typer.echo(line)
        typer.echo(str(out / "card.md"))

    return command
