"""YAML front matter edited as text: our `model-index` results go in, every other byte stays.

A YAML library would drop comments and rewrite quotes. So places are found with the parser, the text is cut by hand,
and the result must parse to exactly the old data with our results exchanged; otherwise nothing is written.
"""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longreach.harness.errors import ConfigError

if TYPE_CHECKING:
    import yaml

OURS = "longreach-"
"""Prefix of the data set type of every result that is ours."""
KEY = "model-index"
# The same pattern as the Hugging Face Hub's, but for a byte-order mark and for an empty block.
_FRONT = re.compile(r"(\ufeff?\s*---\r?\n)((?:(?!---[ \t]*\r?$)[^\n]*\n)*?)(?=---[ \t]*\r?$)", re.MULTILINE)


def split_front_matter(text: str) -> tuple[str, str, str]:
    """Opening line, YAML, and the rest from the closing line on; the first two are empty if there is none."""
    match = _FRONT.match(text)
    return (match[1], match[2], text[match.end() :]) if match else ("", "", text)


def join_front_matter(head: str, middle: str, tail: str, newline: str) -> str:
    """Inverse of `split_front_matter`; makes the two lines where there were none."""
    if head:
        return head + middle + tail
    mark = "\ufeff" if tail.startswith("\ufeff") else ""
    return f"{mark}---{newline}{middle}---{newline}{tail.removeprefix(mark)}"


def edit_model_index(text: str, model: str, results: Sequence[Mapping[str, Any]], *, newline: str, where: str) -> str:
    """`text` (YAML, whole lines) with `results` under the entry of `model`, in the place of results that are ours.

    Args:
        where: the file, for messages.

    Raises:
        ConfigError: no valid YAML, no mapping, or a form that cannot be edited as text (flow style, aliases).
    """
    import yaml

    before = _load(text, where)
    try:
        after = _cut_in(text, yaml.compose(text, Loader=yaml.SafeLoader), model, results, newline)
        if yaml.safe_load(after) == _expected(before, model, results):
            return after
    except (_Uneditable, yaml.YAMLError):
        pass
    raise ConfigError(
        f"the {KEY} in the front matter of {where} cannot be edited as text (flow style, aliases or an unusual "
        f"layout); write it in block style, or take it out, and try again (nothing was changed)"
    )


class _Uneditable(Exception):
    """The layout is none that we know."""


def _load(text: str, where: str) -> dict[str, Any]:
    import yaml

    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 2}" if mark else ""  # the opening line counts
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"the front matter of {where}{line} is no valid YAML ({problem}); mend it first") from error
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"the front matter of {where} is no mapping of keys to values; mend it first")
    return data or {}


def is_ours(result: Any) -> bool:
    """Whether a `model-index` result was written by us."""
    dataset = result.get("dataset") if isinstance(result, Mapping) else None
    kind = dataset.get("type") if isinstance(dataset, Mapping) else None
    return isinstance(kind, str) and kind.startswith(OURS)


def _is_model(name: Any, model: str) -> bool:
    """Same model, with or without its organisation in front."""
    return str(name).rsplit("/", 1)[-1].casefold() == model.rsplit("/", 1)[-1].casefold()


def _expected(before: dict[str, Any], model: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    data = copy.deepcopy(before)
    index = data[KEY] = data.get(KEY) or []
    if not isinstance(index, list) or not all(isinstance(entry, dict) for entry in index):
        raise _Uneditable
    entry = next((entry for entry in index if _is_model(entry.get("name"), model)), None)
    if entry is None:
        index.append({"name": model, "results": list(results)})
        return data
    old = entry.get("results") or []
    at = next((number for number, result in enumerate(old) if is_ours(result)), len(old))
    kept = [result for result in old if not is_ours(result)]
    entry["results"] = [*kept[:at], *results, *kept[at:]]
    return data


def _dump(data: Any, indent: int, newline: str) -> str:
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1_000_000)
    return "".join(" " * indent + line + newline for line in text.splitlines())


def _cut_in(text: str, root: Any, model: str, results: Sequence[Mapping[str, Any]], newline: str) -> str:
    """The edit itself: finds where the results belong, and exchanges them."""
    entry = {"name": model, "results": list(results)}
    found = _child(root, KEY) if root is not None else None
    if found is None:
        if root is not None and root.flow_style:
            raise _Uneditable
        return text + _dump({KEY: [entry]}, 0, newline)
    key, index = found
    if _is_empty(index):
        return _fill(text, key, index, _dump([entry], 0, newline))
    _need_block_list(index)
    models = [node for node in index.value if (name := _child(node, "name")) and _is_model(name[1].value, model)]
    if not models:
        end = _end(text, index.value[-1])
        return text[:end] + _dump([entry], index.start_mark.column, newline) + text[end:]
    place = _child(models[0], "results")
    if place is None:
        end, column = _end(text, models[0]), models[0].start_mark.column
        return text[:end] + _dump({"results": list(results)}, column, newline) + text[end:]
    key, old = place
    if _is_empty(old):
        return _fill(text, key, old, _dump(list(results), key.start_mark.column, newline))
    _need_block_list(old)
    return _exchange(text, old, _dump(list(results), old.start_mark.column, newline))


def _exchange(text: str, old: Any, new: str) -> str:
    """A block list with our items taken out, and `new` in the place of the first, else after the last item."""
    ours = [node for node in old.value if _type_of(node).startswith(OURS)]
    if not ours:
        end = _end(text, old.value[-1])
        return text[:end] + new + text[end:]
    for node in reversed(ours):
        start, end = _start(text, node), _end(text, node)
        text = text[:start] + (new if node is ours[0] else "") + text[end:]
    return text


def _type_of(node: Any) -> str:
    dataset = _child(node, "dataset")
    kind = _child(dataset[1], "type") if dataset else None
    return str(kind[1].value) if kind else ""


def _fill(text: str, key: Any, value: Any, new: str) -> str:
    """An empty value (`[]`, `null` or nothing) exchanged for the lines of `new`."""
    at = key.end_mark.index
    colon = text.index(":", at) + 1
    line = text.index("\n", max(colon, value.end_mark.index)) + 1
    rest = text[max(colon, value.end_mark.index) : line]  # a comment after it stays
    return text[:colon] + rest + new + text[line:]


def _child(node: Any, name: str) -> "tuple[yaml.Node, yaml.Node] | None":
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((key, value) for key, value in node.value if key.value == name), None)


def _is_empty(node: Any) -> bool:
    return not node.value or (node.tag.endswith(":null"))


def _need_block_list(node: Any) -> None:
    import yaml

    if not isinstance(node, yaml.SequenceNode) or node.flow_style:
        raise _Uneditable


def _start(text: str, item: Any) -> int:
    """Where the line with the item's dash starts."""
    before = text[: item.start_mark.index].rstrip()
    line = before.rfind("\n") + 1
    if before[line:].strip() != "-":
        raise _Uneditable
    return line


def _end(text: str, node: Any) -> int:
    """Where the line after the node's last word starts; comments and blank lines below belong to what follows."""
    last = _last(node)
    return text.index("\n", len(text[:last].rstrip()) if text[last - 1 : last].isspace() else last) + 1


def _last(node: Any) -> int:
    import yaml

    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    parts = node.value[-1] if isinstance(node, yaml.MappingNode) else node.value[-1:]
    return max(_last(part) for part in parts)
