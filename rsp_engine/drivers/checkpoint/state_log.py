"""The log of a run: a state as a whole, then what each batch changed in it, and notes between.

    commits/N.log    {"batch": N, "leaves": L}             the state after batch N follows:
                     path, a tab, value                    L times
                     {"note": ...}                         what has to be the same in batch N+1, if
                                                           that is run again: its places, answers
                     {"batch": N+1, "set": [...], ...}     what batch N+1 changed
                     ...

A state is a tree of dictionaries; its leaves are all other values, as JSON text. What is written
of a leaf that changed is the difference of its items, or of the texts: so a commit is as large as
what changed, whatever the state is. A leaf that is the same tuple or text as before is not even
looked at: operators with much to keep give out the same tuples for what is as it was. The order of
names does not count.

Where the changes have become larger than the state, a new file begins: all files together are a few
times as large as the state, and so is what is written for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.drivers.checkpoint.item_delta import item_delta, patched_items
from rsp_engine.drivers.checkpoint.record_log import HINT, RecordLog
from rsp_engine.drivers.checkpoint.text_delta import patched_text, text_delta
from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.model.state import StateData

__all__ = ["LoggedState", "StateLog"]

Names = tuple[str, ...]
"""Where a leaf stands: the names from the root on."""

_LEAST = 1 << 16
"""Changes of so few bytes stay changes: a new file costs more than to read them."""
_SHORT = 200
"""A leaf of so few bytes is written as a whole."""


class LoggedState(NamedTuple):
    """What a log holds: the last commit, and what was noted since."""

    batch: int = -1
    state: StateData | None = None
    notes: tuple[Any, ...] = ()


class _Leaf(NamedTuple):
    """A value as it was committed: its text, and the value if it cannot change."""

    text: bytes
    value: object = None


@dataclass(slots=True)
class _Changes:
    """What is other in a state than in the one before."""

    set: list[tuple[Names, bytes]] = field(default_factory=list)
    items: list[tuple[Names, bytes]] = field(default_factory=list)
    change: list[tuple[Names, bytes]] = field(default_factory=list)
    drop: list[Names] = field(default_factory=list)

    def text(self, batch: int, note: object) -> bytes:
        """Return the record of a commit."""
        parts = [b'{"batch":%d' % batch]
        kinds = {"set": self.set, "items": self.items, "change": self.change}
        for name, found in kinds.items():
            if found:
                paths = _shortened(path for path, _ in found)
                pairs = zip(paths, (text for _, text in found), strict=True)
                written = b",".join(b"[%s,%s]" % (_text(path), text) for path, text in pairs)
                parts.append(b'"%s":[%s]' % (name.encode(), written))
        if self.drop:
            parts.append(b'"drop":' + _text([*_shortened(self.drop)]))
        if note is not None:
            parts.append(b'"note":' + _text(note))
        return b",".join(parts) + b"}"


def _shortened(paths: Iterable[Names]) -> Iterator[list[int | str]]:
    """Yield each path as how many names it shares with the one before, and the others.

    >>> [*_shortened([("a", "b", "c"), ("a", "b", "d"), ("e",)])]
    [[0, 'a', 'b', 'c'], [2, 'd'], [0, 'e']]
    """
    before: Names = ()
    for path in paths:
        pairs = zip(before, path, strict=False)
        count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        yield [count, *path[count:]]
        before = path


def _whole(shortened: Iterable[Sequence[Any]]) -> Iterator[Names]:
    """Yield the paths as they were."""
    before: Names = ()
    for count, *names in shortened:
        before = (*before[:count], *names)
        yield before


class StateLog:
    """The commits of a run in a folder. Memory: the text of the last state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._leaves: dict[Names, _Leaf] = {}
        self._log: RecordLog | None = None
        self._whole = 0
        """How many bytes the state took at the start of the file."""

    @property
    def exists(self) -> bool:
        """Whether there is a log."""
        return bool(self._numbers())

    def begin(self) -> None:
        """Begin a log that holds nothing."""
        self._start(-1, {}, None)

    def read(self) -> LoggedState:
        """Return what was committed last, and go on from there."""
        numbers = self._numbers()
        if not numbers:
            raise StateError(f"{self._folder} holds no state", HINT)
        path = self._path(numbers[-1])
        self._log, records = RecordLog.opened(path)
        try:
            saved = self._replay(numbers[-1], records)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"{path} is damaged: {error!r}", HINT) from None
        self._tidy(numbers[-1])
        return saved

    def note(self, note: object) -> None:
        """Write down something before the next commit."""
        self._opened().append(b'{"note":%s}' % _text(note))

    def commit(self, batch: int, state: StateData, note: object = None) -> None:
        """Write the state after a batch, and what is to be noted for the next one.

        If that fails, the state before is the last one, and all that was noted stays.
        """
        leaves, changes = self._compared(state)
        log = self._opened()
        record = changes.text(batch, note)
        if log.end - self._whole + len(record) > max(self._whole, _LEAST):
            self._start(batch, leaves, note)
        else:
            log.append(record)
        self._leaves = leaves

    def _start(self, batch: int, leaves: dict[Names, _Leaf], note: object) -> None:
        """Begin a new file with a state as a whole."""
        records = [b'{"batch":%d,"leaves":%d}' % (batch, len(leaves))]
        records += (b"%s\t%s" % (_text(path), leaf.text) for path, leaf in leaves.items())
        whole = sum(map(len, records))
        if note is not None:
            records.append(b'{"note":%s}' % _text(note))
        self._log, self._whole = RecordLog.created(self._path(batch), records), whole
        self._tidy(batch)

    def _compared(self, state: StateData) -> tuple[dict[Names, _Leaf], _Changes]:
        """Return the leaves of a state, and what is other in them than in the last commit."""
        before, leaves, changes = self._leaves, dict[Names, _Leaf](), _Changes()
        for path, value in _leaves((), state):
            known = before.get(path)
            if known is not None and known.value is value and value is not None:
                leaves[path] = known
                continue
            text = _text(value)
            kept = value if isinstance(value, str | tuple) else None
            leaves[path] = _Leaf(text if known is None or known.text != text else known.text, kept)
            if known is None:
                changes.set.append((path, text))
            elif known.text != text:
                _note_change(changes, path, known.text, text, value)
        changes.drop = [path for path in before if path not in leaves]
        return leaves, changes

    def _replay(self, number: int, records: list[bytes]) -> LoggedState:
        head = json.loads(records[0])
        whole, changes = records[1 : head["leaves"] + 1], records[head["leaves"] + 1 :]
        if head["batch"] != number or len(whole) < head["leaves"]:
            raise ValueError("the state at its start is not whole")
        self._whole = sum(map(len, whole))
        pairs = (each.split(b"\t") for each in whole)
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

    def _opened(self) -> RecordLog:
        if self._log is None:
            self.read()
        assert self._log is not None, "it was read"  # noqa: S101
        return self._log

    def _numbers(self) -> list[int]:
        """Return the batches at which files begin, in order; others' files do not count."""
        stems = (path.stem for path in self._folder.glob("*.log"))
        return sorted(int(s) for s in stems if s.removeprefix("-").isdigit() and s.isascii())

    def _path(self, batch: int) -> Path:
        return self._folder / f"{batch}.log"

    def _tidy(self, last: int) -> None:
        """Remove files before the last one, and what was not written to its end."""
        for old in self._numbers():
            if old < last:
                self._path(old).unlink(missing_ok=True)
        for half in self._folder.glob("*.new"):
            half.unlink(missing_ok=True)


def _text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _leaves(path: Names, value: object) -> Iterator[tuple[Names, object]]:
    """Yield the leaves of a tree; a dictionary without anything in it is one."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _leaves((*path, str(name)), part)
    else:
        yield path, value


def _tree(texts: Mapping[Names, bytes]) -> StateData:
    """Return the tree of leaves, the names in order: nobody may mind which came first."""
    made: StateData = {}
    for path in sorted(path for path in texts if path):
        part = made
        for name in path[:-1]:
            part = part.setdefault(name, {})
        part[path[-1]] = json.loads(texts[path])
    return made


def _note_change(changes: _Changes, path: Names, old: bytes, new: bytes, value: object) -> None:
    """Note a leaf that has changed: what is new of its items, or of its text, or all of it."""
    found = [(len(new), changes.set, new)]
    if len(new) > _SHORT:
        if isinstance(value, list | tuple) and old.startswith(b"["):
            text = _text(item_delta(json.loads(old), value))
            found.append((len(text), changes.items, text))
        if found[-1][0] > len(new) // 4:
            text = _text(text_delta(old, new))
            found.append((len(text), changes.change, text))
    _, changed, text = min(found, key=itemgetter(0))
    changed.append((path, text))


def _apply(texts: dict[Names, bytes], record: Mapping[str, Any]) -> None:
    """Let the texts of leaves be what they are after a commit."""
    for path in _whole(record.get("drop", ())):
        del texts[path]
    for path, parts in _pairs(record.get("items", ())):
        texts[path] = _text(patched_items(json.loads(texts[path]), parts))
    for path, parts in _pairs(record.get("change", ())):
        texts[path] = patched_text(texts[path], parts)
    for path, value in _pairs(record.get("set", ())):
        texts[path] = _text(value)


def _pairs(found: Sequence[Sequence[Any]]) -> Iterator[tuple[Names, Any]]:
    return zip(_whole(path for path, _ in found), (value for _, value in found), strict=True)
