"""`longreach export`, `import` and `merge`: work that is done elsewhere, and its results."""

from pathlib import Path
from typing import Annotated

import typer

from longreach.harness.commands.importing import add_import_commands
from longreach.harness.commands.options import ALL_FIELDS, SAMPLE_FIELDS, path_option, with_options
from longreach.harness.running.options import Options


def add_exchange_commands(app: typer.Typer) -> None:
    """Registers the commands; each format is a command below `export` or `import`."""
    exports = typer.Typer(help="Write requests or tasks for another program.", no_args_is_help=True)
    imports = typer.Typer(help="Read results of another program into a run folder.", no_args_is_help=True)
    app.add_typer(exports, name="export")
    app.add_typer(imports, name="import")
    doc = "Requests as batch files (FILE-00001.jsonl ...); the settings go into the run folder, --out."
    file = Annotated[Path, typer.Argument(help="Name of the files, such as batch.jsonl.", metavar="FILE")]
    fields = tuple(name for name in ALL_FIELDS if name not in ("force", "max_cost", "max_tokens", "max_time"))
    exports.command("openai-batch")(
        with_options(_export_batch, fields, name="openai-batch", doc=doc, first=("file", file))
    )
    doc = "Our tasks for `lm-eval run --include_path DIR`: BATTERY, or all of them and every task by itself."
    folder = Annotated[Path, typer.Argument(help="Folder for the YAML files.", metavar="DIR")]
    fields = (*SAMPLE_FIELDS, "reasoning_budget")
    exports.command("lm-eval")(with_options(_export_lm_eval, fields, name="lm-eval", doc=doc, first=("folder", folder)))
    exports.command("lm-eval-results")(_export_lm_eval_results)
    imports.command("openai-batch")(_import_batch)
    add_import_commands(imports)
    app.command("merge")(_merge)


def _export_batch(file: Path, options: Options) -> None:
    from longreach.harness.running.batch import export_batch

    files, n, folder = export_batch(options, file)
    typer.echo(
        f"{n} requests; when they are answered: longreach import openai-batch OUTPUT... --out {folder}", err=True
    )
    for path in files:
        typer.echo(str(path))


def _export_lm_eval(folder: Path, options: Options) -> None:
    from longreach.harness.running.exporting import export_tasks

    found = export_tasks("lm-eval", options, folder)
    for line in found.left_out:
        typer.echo(f"longreach: left out: {line}", err=True)
    typer.echo(
        f"run: lm-eval run --model hf --model_args pretrained=MODEL --apply_chat_template --include_path {folder} "
        f'--tasks {next(iter(found.groups))} --metadata \'{{"lengths": "4k,8k"}}\' --output_path OUT --log_samples',
        err=True,
    )
    for name, tasks in found.groups.items():
        typer.echo(name if tasks == [name] else f"{name}: {', '.join(tasks)}")


def _export_lm_eval_results(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    folder: Annotated[Path, typer.Argument(help="Folder for the files.", metavar="DIR")],
) -> None:
    """A run's samples in lm-eval's two files (results and samples), for tools that read those."""
    from longreach.harness.running.importing import export_results

    for path in export_results("lm-eval", run, folder):
        typer.echo(str(path))


def _import_batch(
    files: Annotated[list[Path], typer.Argument(help="Output and error files, in any order.", metavar="FILE...")],
    out: Annotated[Path, path_option("Run folder that the export wrote.")],
) -> None:
    """Score the replies of batch files and write the card."""
    from longreach.harness.running.batch import import_batch
    from longreach.harness.running.progress import Progress

    found = import_batch(files, out, Progress())
    told = f"{found.answers} answers, {found.errors} errors"
    told += f", {found.strangers} lines of other runs" if found.strangers else ""
    told += f", {found.repeated} lines repeated" if found.repeated else ""
    typer.echo(told, err=True)
    typer.echo(str(found.folder / "card.md"))
    raise typer.Exit(found.exit_code)


def _merge(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or the folder that holds the shards.", metavar="RUN...")
    ],
    out: Annotated[Path, path_option("Run folder to write.")],
) -> None:
    """Shards (or runs of the same settings) as one run folder; exit 3 if something of the plan is missing."""
    from longreach.harness.running.merge import merge

    found = merge(runs, out)
    typer.echo(f"{found.n} samples of {len(found.folders)} folders", err=True)
    if found.missing:
        typer.echo(f"longreach: incomplete: shards {', '.join(found.missing)} are missing", err=True)
    if found.untested:
        typer.echo(f"longreach: incomplete: {found.untested} planned cells are not tested", err=True)
    for line in found.card.verdict_lines()[:9]:
        typer.echo(line)
    typer.echo(str(out / "card.md"))
    raise typer.Exit(3 if found.missing or found.untested else 0)
