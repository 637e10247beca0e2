"""The log of states: one full state, then the changes of each micro-batch, and notes between them.

    commits/N.log    {"batch": N, "leaves": L}             the state after batch N follows:
                     path, a tab, value                    L times
                     {"note": ...}                         what must be repeated if batch N+1 is run
                                                           again: its splits, responses of services
                     {"batch": N+1, "set": [...], ...}     what batch N+1 changed
                     ...

A state is a tree of dictionaries; its leaves are all other values, as JSON text. A leaf that
changed is written as the delta of its items, or of its text, so the size of a commit is that of the
change, however large the state is. A leaf that is the same tuple or string object as before is not
even compared: operators with large states return the same tuples for what has not changed. The
order of names does not matter.

When the changes are larger than the state, a new file begins. So the log takes a few times the size
of the state, on disk and in writing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.drivers.checkpoint.delta import (
    item_delta,
    patched_items,
    patched_text,
    text_delta,
)
from rsp_engine.drivers.checkpoint.logged_state import LoggedState
from rsp_engine.drivers.checkpoint.record_log import HINT, RecordLog
from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.model.state import StateData

__all__ = ["StateLog"]

Names = tuple[str, ...]
"""The path of a leaf: the names from the root."""

_LEAST = 1 << 16
"""No new file begins for fewer bytes of changes: it would cost more than reading them."""
_SHORT = 200
"""A leaf of at most this many bytes is written in full, without a delta."""


class _Leaf(NamedTuple):
    """A committed value: its text, and the object itself if it is immutable."""

    text: bytes
    value: object = None


@dataclass(slots=True)
class _Changes:
    """The changes from one state to the next."""

    set: list[tuple[Names, bytes]] = field(default_factory=list)
    items: list[tuple[Names, bytes]] = field(default_factory=list)
    change: list[tuple[Names, bytes]] = field(default_factory=list)
    drop: list[Names] = field(default_factory=list)

    def text(self, batch: int, note: object) -> bytes:
        """Return the record of a commit."""
        parts = [b'{"batch":%d' % batch]
        kinds = {"set": self.set, "items": self.items, "change": self.change}
        for name, changes in kinds.items():
            if changes:
                paths = _shorten(path for path, _ in changes)
                pairs = zip(paths, (text for _, text in changes), strict=True)
                written = b",".join(b"[%s,%s]" % (_text(path), text) for path, text in pairs)
                parts.append(b'"%s":[%s]' % (name.encode(), written))
        if self.drop:
            parts.append(b'"drop":' + _text([*_shorten(self.drop)]))
        if note is not None:
            parts.append(b'"note":' + _text(note))
        return b",".join(parts) + b"}"


def _shorten(paths: Iterable[Names]) -> Iterator[list[int | str]]:
    """Yield each path as the number of names it shares with the previous one, and its other names.

    >>> [*_shorten([("a", "b", "c"), ("a", "b", "d"), ("e",)])]
    [[0, 'a', 'b', 'c'], [2, 'd'], [0, 'e']]
    """
    before: Names = ()
    for path in paths:
        pairs = zip(before, path, strict=False)
        count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        yield [count, *path[count:]]
        before = path


def _expand(shortened: Iterable[Sequence[Any]]) -> Iterator[Names]:
    """Yield the full paths: the inverse of `_shorten`."""
    before: Names = ()
    for count, *names in shortened:
        before = (*before[:count], *names)
        yield before


class StateLog:
    """The log of a run in a folder. Memory: the text of the last state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._leaves: dict[Names, _Leaf] = {}
        self._log: RecordLog | None = None
        self._state_bytes = 0
        """The size of the state at the start of the file."""

    @property
    def exists(self) -> bool:
        """Whether the folder has a log."""
        return bool(self._numbers())

    def begin(self) -> None:
        """Begin an empty log."""
        self._start_file(-1, {}, None)

    def read(self) -> LoggedState:
        """Return the last commit and the notes since then, and append from there on."""
        numbers = self._numbers()
        if not numbers:
            raise StateError(f"{self._folder} contains no state", HINT)
        path = self._path(numbers[-1])
        self._log, records = RecordLog.opened(path)
        try:
            saved = self._replay(numbers[-1], records)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"{path} is damaged: {error!r}", HINT) from None
        self._tidy(numbers[-1])
        return saved

    def note(self, note: object) -> None:
        """Log a note before the next commit."""
        self._open().append(b'{"note":%s}' % _text(note))

    def commit(self, batch: int, state: StateData, note: object = None) -> None:
        """Write the state after a micro-batch, with a note for the next one.

        If that fails, the previous commit stays the last one, with all its notes.
        """
        leaves, changes = self._compare(state)
        log = self._open()
        record = changes.text(batch, note)
        if log.end - self._state_bytes + len(record) > max(self._state_bytes, _LEAST):
            self._start_file(batch, leaves, note)
        else:
            log.append(record)
        self._leaves = leaves

    def _start_file(self, batch: int, leaves: dict[Names, _Leaf], note: object) -> None:
        """Begin a new file with a full state."""
        records = [b'{"batch":%d,"leaves":%d}' % (batch, len(leaves))]
        records += (b"%s\t%s" % (_text(path), leaf.text) for path, leaf in leaves.items())
        size = sum(map(len, records))
        if note is not None:
            records.append(b'{"note":%s}' % _text(note))
        self._log, self._state_bytes = RecordLog.created(self._path(batch), records), size
        self._tidy(batch)

    def _compare(self, state: StateData) -> tuple[dict[Names, _Leaf], _Changes]:
        """Return the leaves of a state, and their changes since the last commit."""
        before, leaves, changes = self._leaves, dict[Names, _Leaf](), _Changes()
        for path, value in _leaves((), state):
            known = before.get(path)
            if known is not None and known.value is value and value is not None:
                leaves[path] = known
                continue
            text = _text(value)
            immutable = value if isinstance(value, str | tuple) else None
            shared = known.text if known is not None and known.text == text else text
            leaves[path] = _Leaf(shared, immutable)
            if known is None:
                changes.set.append((path, text))
            elif known.text != text:
                _add_change(changes, path, known.text, text, value)
        changes.drop = [path for path in before if path not in leaves]
        return leaves, changes

    def _replay(self, number: int, records: list[bytes]) -> LoggedState:
        head = json.loads(records[0])
        leaves, changes = records[1 : head["leaves"] + 1], records[head["leaves"] + 1 :]
        if head["batch"] != number or len(leaves) < head["leaves"]:
            raise ValueError("the state at its start is not whole")
        self._state_bytes = sum(map(len, leaves))
        pairs = (each.split(b"\t") for each in leaves)
        texts: dict[Names, bytes] = {tuple(json.loads(path)): text for path, text in pairs}
        batch, notes = number, list[Any]()
        for record in map(json.loads, changes):
            if "batch" not in record:
                notes.append(record["note"])
                continue
            if record["batch"] != batch + 1:
                raise ValueError(f"after batch {batch} comes {record['batch']}")
            batch, notes = batch + 1, [record["note"]] if "note" in record else []
            _apply(texts, record)
        self._leaves = {path: _Leaf(text) for path, text in texts.items()}
        return LoggedState(batch, _tree(texts) if batch >= 0 else None, tuple(notes))

    def _open(self) -> RecordLog:
        if self._log is None:
            self.read()
        assert self._log is not None, "it was read"  # noqa: S101
        return self._log

    def _numbers(self) -> list[int]:
        """Return the micro-batches at which files begin, in order; ignore foreign files."""
        stems = (path.stem for path in self._folder.glob("*.log"))
        return sorted(int(s) for s in stems if s.removeprefix("-").isdigit() and s.isascii())

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.log"

    def _tidy(self, last: int) -> None:
        """Remove the files before the last one, and those that were not completed."""
        for old in self._numbers():
            if old < last:
                self._path(old).unlink(missing_ok=True)
        for incomplete in self._folder.glob("*.new"):
            incomplete.unlink(missing_ok=True)


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _leaves(path: Names, value: object) -> Iterator[tuple[Names, object]]:
    """Yield the leaves of a tree; an empty dictionary is one."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _leaves((*path, str(name)), part)
    else:
        yield path, value


def _tree(texts: Mapping[Names, bytes]) -> StateData:
    """Return the tree of leaves, with names in sorted order."""
    tree: StateData = {}
    for path in sorted(path for path in texts if path):
        part = tree
        for name in path[:-1]:
            part = part.setdefault(name, {})
        part[path[-1]] = json.loads(texts[path])
    return tree


def _add_change(changes: _Changes, path: Names, old: bytes, new: bytes, value: object) -> None:
    """Add a leaf that has changed: the delta of its items, or of its text, or all of it."""
    forms = [(len(new), changes.set, new)]
    if len(new) > _SHORT:
        if isinstance(value, list | tuple) and old.startswith(b"["):
            text = _text(item_delta(json.loads(old), value))
            forms.append((len(text), changes.items, text))
        if forms[-1][0] > len(new) // 4:
            text = _text(text_delta(old, new))
            forms.append((len(text), changes.change, text))
    _, chosen, text = min(forms, key=itemgetter(0))
    chosen.append((path, text))


def _apply(texts: dict[Names, bytes], record: Mapping[str, Any]) -> None:
    """Apply the changes of a commit to the texts of the leaves."""
    for path in _expand(record.get("drop", ())):
        del texts[path]
    for path, parts in _pairs(record.get("items", ())):
        texts[path] = _text(patched_items(json.loads(texts[path]), parts))
    for path, parts in _pairs(record.get("change", ())):
        texts[path] = patched_text(texts[path], parts)
    for path, value in _pairs(record.get("set", ())):
        texts[path] = _text(value)


def _pairs(changes: Sequence[Sequence[Any]]) -> Iterator[tuple[Names, Any]]:
    return zip(_expand(path for path, _ in changes), (value for _, value in changes), strict=True)
