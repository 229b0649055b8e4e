"""`longreach card`: one run, several runs of one model, or several models; then what the user wants of the card."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from longreach.harness.errors import ConfigError, RunFolderError
from longreach.harness.running.revisit import rewrite
from longreach.harness.running.store import CONFIG
from longreach.harness.running.unite import RunFolder, read_folder, unite, united

if TYPE_CHECKING:
    from longreach.harness.report.card import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is to be made of a card beyond the run folder."""

    templates: tuple[Path, ...] = ()
    readme: Path | None = None
    metadata: bool = False
    benchmarks: Mapping[str, str] = field(default_factory=dict)
    """Task label -> data set on the hub."""

    @classmethod
    def of(
        cls, templates: Sequence[Path], *, readme: Path | None, metadata: bool, benchmarks: Sequence[str]
    ) -> "Wishes":
        """From the command line.

        Raises:
            ConfigError: an option that needs another one, or `--benchmark` without `=`.
        """
        pairs = {}
        for item in benchmarks:
            label, sign, dataset = item.rpartition("=")  # a label may hold "=": niah.multi[needles=4]
            if not sign or not label:
                raise ConfigError(
                    f"--benchmark {item!r} is not of the form TASK=ORG/DATASET, such as ruler.vt=org/ruler"
                )
            pairs[label] = dataset
        if readme is None and (metadata or pairs):
            option = "--metadata" if metadata else "--benchmark"
            raise ConfigError(f"{option} needs --readme PATH: the README of the model's own repository")
        return cls(templates=tuple(templates), readme=readme, metadata=metadata, benchmarks=pairs)


def publish(
    runs: Sequence[Path],
    out: Path | None,
    wishes: Wishes,
    say: Callable[[str], None] | None = None,
    baseline: Path | None = None,
) -> Iterator[str]:
    """Writes the card and what is wished of it; yields the lines for standard output.

    Raises:
        ConfigError, RunFolderError: one line; what was written before it is whole.
    """
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise ConfigError("the same run folder was given twice; name different runs")
    if len(runs) == 1 and out is None:
        card = rewrite(runs[0], say, baseline)
        yield from _told(card, runs[0], wishes)
        return
    found = [read_folder(folder) for folder in runs]
    models = list(dict.fromkeys(run.model for run in found))
    if len(models) > 1:
        if baseline is not None:
            raise ConfigError(
                "--baseline is for the card of one model; `longreach compare BASE NEW...` takes several runs"
            )
        yield from _compare(found, models, out or runs[0].parent / "comparison", wishes)
        return
    folder = out or runs[0].parent / f"{re.sub(r'[^A-Za-z0-9.]+', '-', models[0]).strip('-.')[:60]}-united"
    yield from _told(unite(found, folder, say, baseline), folder, wishes)


def _told(card: "Card", folder: Path, wishes: Wishes) -> Iterator[str]:
    from longreach.harness.report.own_template import write_own
    from longreach.harness.report.publish import eval_results, insert_block, write_metadata

    yield from card.verdict_lines()
    yield str(folder / "card.md")
    for template in wishes.templates:
        yield str(write_own(template, card.context(), folder))
    if wishes.readme is None:
        return
    changed = insert_block(wishes.readme, card.to_markdown(), folder=folder)
    if wishes.metadata:
        changed = write_metadata(wishes.readme, card.to_dict()) or changed
    yield f"{wishes.readme}{'' if changed else ' (unchanged)'}"
    if wishes.benchmarks:
        for path in eval_results(card.to_dict(), wishes.benchmarks, wishes.readme.parent):
            yield str(path)


def _compare(found: Sequence[RunFolder], models: Sequence[str], out: Path, wishes: Wishes) -> Iterator[str]:
    """The comparison of several models; runs of the same one are united in memory."""
    from longreach.harness.report.card import make_card
    from longreach.harness.report.models import Models, write_models
    from longreach.harness.report.own_template import write_own
    from longreach.harness.report.publish import insert_block

    if wishes.metadata or wishes.benchmarks:
        raise ConfigError("--metadata and --benchmark are for one model; name runs of one model")
    if (out / CONFIG).exists():
        raise RunFolderError(f"{out} is a run folder and is not overwritten; name another folder with --out")
    cards = []
    for model in models:
        config, records = united([run for run in found if run.model == model])
        cards.append(make_card(records, config))
    comparison = Models(cards=tuple(cards))
    write_models(comparison, out)
    yield from comparison.verdict_lines()
    yield str(out / "card.md")
    for template in wishes.templates:
        yield str(write_own(template, comparison.context(), out))
    if wishes.readme is not None:
        changed = insert_block(wishes.readme, (out / "card.md").read_text(encoding="utf-8"), folder=out)
        yield f"{wishes.readme}{'' if changed else ' (unchanged)'}"
