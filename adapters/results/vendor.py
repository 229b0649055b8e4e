"""Rows that a vendor printed: a CSV with the columns task, length, score and, where they are stated, n, model and source.

Scores may be 0 to 1 or, in a column `score_percent`, 0 to 100. They stand beside what was measured and feed nothing.
"""

from collections.abc import Sequence
from pathlib import Path

from longreach.adapters.results.shared import files_below, read_table, whole
from longreach.harness.errors import DataError
from longreach.harness.imported import ImportedRun, ImportedTask, SummaryRow, as_score


def read(paths: Sequence[Path]) -> ImportedRun:
    """All tables that were named.

    Raises:
        DataError: no such columns, or several models.
    """
    rows: list[SummaryRow] = []
    strange: list[str] = []
    models: dict[str, None] = {}
    sources: dict[str, None] = {}
    for path in files_below(paths, "*.csv"):
        header, *lines = read_table(path) or [[]]
        names = [name.strip().lower() for name in header]
        if "task" not in names or "length" not in names or not {"score", "score_percent"} & set(names):
            raise DataError(f"{path} needs the columns task, length and score (0 to 1) or score_percent (0 to 100)")
        for number, line in enumerate(lines, start=2):
            row = dict(zip(names, (cell.strip() for cell in line), strict=False))
            length = whole(row.get("length"))
            given, scale = (row["score"], 1.0) if row.get("score") else (row.get("score_percent"), 100.0)
            mean = as_score(given, scale=scale)
            if length is None or mean is None or not row["task"]:
                strange.append(f"{path.name}, row {number}: {', '.join(line)}")
                continue
            rows.append(SummaryRow(task=row["task"], length=length, mean=mean, n=whole(row.get("n"))))
            models |= {row["model"]: None} if row.get("model") else {}
            sources |= {row["source"]: None} if row.get("source") else {}
    if not rows:
        raise DataError(f"no row has a task, a length and a score: {'; '.join(strange[:3]) or 'the table is empty'}")
    if len(models) > 1:
        raise DataError(f"the rows are of several models ({', '.join(models)}); import one model at a time")
    return ImportedRun(
        tool="vendor",
        model=next(iter(models), None),
        tasks=[
            ImportedTask(label=task, capability="documents", family="reported", source=", ".join(sources))
            for task in dict.fromkeys(row.task for row in rows)
        ],
        rows=rows,
        vendor=True,
        notes=tuple(f"Source of the vendor's rows: {source}" for source in sources),
        not_understood=tuple(strange),
    )
