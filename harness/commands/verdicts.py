"""`longreach gate` and `compare`: verdicts with exit codes for CI."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longreach.harness.commands.options import path_option

if TYPE_CHECKING:
    from longreach.harness.stats.compare import Comparison
    from longreach.harness.stats.series import Series


def add_verdict_commands(app: typer.Typer) -> None:
    """Registers the commands."""
    app.command("gate")(gate)
    app.command("compare")(compare)


def gate(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    gates: Annotated[
        list[str],
        typer.Argument(help="METRIC[@LENGTH] OP NUMBER[UNIT], such as 'recall@64k > 0.95'.", metavar="GATE..."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Pass, fail or undecided with the interval. Exit 1 if any fails, else 3 if any is undecided."""
    from longreach.harness.stats.gate_values import check_gates
    from longreach.harness.stats.gates import exit_code
    from longreach.harness.stats.pairs import read_run

    found = read_run(run)
    results = check_gates(gates, found.records, found.config)
    if as_json:
        typer.echo(json.dumps([result.to_dict() for result in results], ensure_ascii=False, indent=2))
    else:
        for result in results:
            typer.echo(result.line)
    raise typer.Exit(exit_code([result.verdict for result in results]))


def compare(
    runs: Annotated[
        list[Path], typer.Argument(help="Base run, then the new one, or a whole series.", metavar="BASE NEW...")
    ],
    repeat: Annotated[
        Path | None, path_option("The base model once more on the same samples: measures run noise.")
    ] = None,
    margin: Annotated[
        float, typer.Option(help="Change of a mean score that does not matter.", min=0.0, max=1.0)
    ] = 0.05,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown, for a pull request or a model card.")] = False,
    figure: Annotated[Path | None, path_option("Write the picture here, as .png or .svg.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Better, worse, within noise or cannot tell, per task and length, on the samples that the runs share.

    Exit 1 if the last run is worse than the first, 3 if they share no sample or cells became untestable.
    """
    from longreach.harness.errors import ConfigError
    from longreach.harness.report.compare_text import to_lines, to_markdown
    from longreach.harness.stats.compare import compare as compare_runs
    from longreach.harness.stats.pairs import read_run
    from longreach.harness.stats.series import make_series, series_lines, series_markdown

    if len(runs) < 2:
        raise ConfigError("compare needs two run folders or more: longreach compare BASE NEW")
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise ConfigError("compare was given the same run folder twice; name different runs")
    found = [read_run(folder) for folder in runs]
    noise = read_run(repeat) if repeat else None
    series = make_series(found, margin=margin) if len(found) > 2 else None
    if series is None:
        result = compare_runs(found[0], found[1], margin=margin, repeat=noise)
    elif noise is None:
        result = series.last
    else:
        raise ConfigError("--repeat goes with two runs; leave it out for a series")
    if figure is not None:
        _picture(figure, series, result)
    if as_json:
        typer.echo(json.dumps(series.to_dict() if series else result.to_dict(), ensure_ascii=False, indent=2))
    elif markdown:
        if series:
            typer.echo(series_markdown(series))
        typer.echo(to_markdown(result), nl=False)
    else:
        for line in [*(series_lines(series) if series else ()), *to_lines(result)]:
            typer.echo(line)
    raise typer.Exit(result.exit_code)


def _picture(path: Path, series: "Series | None", result: "Comparison") -> None:
    """Small multiples: a panel per run of a series, or a panel per task of two runs."""
    from longreach.harness.errors import ConfigError
    from longreach.harness.report.figure_change import draw_change
    from longreach.harness.report.figure_series import draw_series
    from longreach.harness.report.figures import style

    if path.suffix not in (".png", ".svg"):
        raise ConfigError(f"--figure {path} must end in .png or .svg")
    with style():
        drawing = draw_series(series) if series else draw_change(result)
    if drawing is not None:
        path.write_bytes(drawing.png if path.suffix == ".png" else drawing.svg.encode("utf-8"))
        typer.echo(f"longreach: {path} written", err=True)
