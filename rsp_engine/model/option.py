"""The declaration of an option: a field of a dataclass, with its help, its unit and its limits.

Each option is declared once. The keywords of `Engine`, the flags of `rsp run`, the keys of
`rsp.toml`, the variables of the environment and the reference tables are derived from it.

>>> @dataclass(frozen=True, kw_only=True)
... class Kitchen(Options):
...     wait: DurationLike = option(0, "How long to wait for the oven.", unit="ms", minimum=0)
>>> Kitchen(wait="5s").wait
5000
>>> [(known.name, known.flag, known.variable) for known in declared(Kitchen)]
[('wait', '--wait', 'RSP_WAIT')]
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from math import isnan
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from textwrap import fill
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    TypeVar,
    get_args,
    get_type_hints,
)

from rsp_engine.model.quantities import format_duration, has_unit, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DurationLike",
    "Option",
    "Options",
    "declared",
    "described",
    "milliseconds",
    "option",
    "takes_options",
]

DurationLike = int | str
"""Milliseconds, or a text such as `5s`, `PT5S` or `300ms`."""

_Value = TypeVar("_Value")
_Self = TypeVar("_Self")
_Made = TypeVar("_Made", bound="Options")
_Keywords = ParamSpec("_Keywords")
_KEY = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A declared option.

    Attributes:
        help: One sentence that says what the option sets.
        unit: What its number counts; it is the placeholder of the value, unless `metavar` is set.
        metavar: The placeholder of the value in help.
        unset: What holds if the value is None, in a few words.
        counts: Whether a bare number counts things, and a text with a unit is a duration.
        minimum: The smallest value.
        maximum: The largest value.
        word: The name of the flag, if it is not that of the field.
        name: The name of the field.
        type: The type of the field.
        default: The default of the field.
    """

    help: str
    unit: str | None = None
    metavar: str | None = None
    unset: str | None = None
    counts: bool = False
    minimum: float | None = None
    maximum: float | None = None
    word: str | None = None
    name: str = ""
    type: Any = None
    default: Any = None

    @property
    def key(self) -> str:
        """The name of the option in `rsp.toml`."""
        return self.word or self.name.replace("_", "-")

    @property
    def flag(self) -> str:
        """The flag of the option."""
        return f"--{self.key}"

    @property
    def variable(self) -> str:
        """The variable of the environment that sets the option."""
        return f"RSP_{self.key.replace('-', '_').upper()}"

    @property
    def is_text(self) -> bool:
        """Whether the value is written as text: a duration, or a number of things."""
        return {int, str} <= set(get_args(self.type))

    @property
    def is_duration(self) -> bool:
        """Whether the value is a `DurationLike`."""
        return self.is_text and not self.counts

    @property
    def default_text(self) -> str:
        """The default as a flag has it."""
        if self.is_duration and isinstance(self.default, int) and self.default:
            return format_duration(self.default)
        return str(self.default)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that a `Literal` allows; none if any value is possible."""
        return next((get_args(t) for t in _alternatives(self.type) if _is_literal(t)), ())

    def check(self, value: Any) -> Any:  # noqa: ANN401 - of any type that an option has
        """Return a value, a duration in milliseconds; raise `ValueError` with what is wrong.

        >>> Option(help="", type=DurationLike, minimum=0).check("-5s")
        Traceback (most recent call last):
        ValueError: it must not be negative
        """
        if value is None:
            return None
        if self.is_duration:
            value = milliseconds(value)
        if self.counts and isinstance(value, str):
            return _count_or_duration(value)
        value = _of_type(value, _alternatives(self.type))
        if self.choices and value not in self.choices:
            raise ValueError(f"it must be one of {', '.join(self.choices)}")
        if self.minimum is not None and value < self.minimum:
            least = f"be at least {self.minimum}" if self.minimum else "not be negative"
            raise ValueError(f"it must {least}")
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"it must be at most {self.maximum}")
        return value


@dataclass(frozen=True, kw_only=True)
class Options:
    """The base of dataclasses of options: it checks the values."""

    title: ClassVar[str] = ""
    """The heading of these options in help and in the reference."""

    def __post_init__(self) -> None:
        for known in declared(type(self)):
            value = getattr(self, known.name)
            try:
                object.__setattr__(self, known.name, known.check(value))
            except ValueError as reason:
                raise ValueError(f"{known.name}={value!r}: {reason}") from None

    def part(self, kind: type[_Made]) -> _Made:
        """Return the options of one of the classes that this one inherits from."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(kind)})


def option(  # noqa: PLR0913 - what there is to say of an option
    default: _Value,
    help: str,  # noqa: A002 - as argparse and typer call it
    *,
    unit: str | None = None,
    metavar: str | None = None,
    unset: str | None = None,
    counts: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    word: str | None = None,
) -> _Value:
    """Declare an option as a field of a dataclass; see `Option`."""
    known = Option(
        help=help,
        unit=unit,
        metavar=metavar,
        unset=unset,
        counts=counts,
        minimum=minimum,
        maximum=maximum,
        word=word,
    )
    return field(default=default, metadata={_KEY: known})


_DECLARED: dict[type[Options], tuple[Option, ...]] = {}
"""The options of each dataclass: reading type hints is slow."""


def declared(kind: type[Options]) -> tuple[Option, ...]:
    """Return the options that a dataclass declares, in order."""
    if kind not in _DECLARED:
        types = get_type_hints(kind)
        _DECLARED[kind] = tuple(
            replace(known, name=each.name, type=types[each.name], default=each.default)
            for each in fields(kind)
            if (known := each.metadata.get(_KEY)) is not None
        )
    return _DECLARED[kind]


def described(kind: type[Options]) -> str:
    """Return the options of a dataclass as the section `Args` of a docstring.

    >>> @dataclass(frozen=True, kw_only=True)
    ... class Kitchen(Options):
    ...     ovens: int = option(2, "How many ovens there are.")
    >>> print(described(Kitchen))
    Args:
        ovens: How many ovens there are. Default 2.
    """
    lines = (f"{known.name}: {known.help} {_default(known)}" for known in declared(kind))
    wrapped = (fill(line, 92, initial_indent=" " * 4, subsequent_indent=" " * 8) for line in lines)
    return "\n".join(("Args:", *wrapped))


def takes_options(
    kind: Callable[_Keywords, _Made],
) -> Callable[[Callable[[_Self, _Made], None]], Callable[Concatenate[_Self, _Keywords], None]]:
    """Make a constructor that takes options as keywords, from one that takes the dataclass.

    Type checkers and `inspect.signature` see the names, the types and the defaults of the fields.
    """

    def decorate(
        construct: Callable[[_Self, _Made], None],
    ) -> Callable[Concatenate[_Self, _Keywords], None]:
        @wraps(construct)
        def init(self: _Self, /, *values: _Keywords.args, **named: _Keywords.kwargs) -> None:
            for name in named.keys() - keywords.keys():
                near = get_close_matches(name, keywords, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{type(self).__name__} has no option {name}{hint}")
            construct(self, kind(*values, **named))

        keywords = signature(kind).parameters
        first = Parameter("self", Parameter.POSITIONAL_ONLY)
        init.__signature__ = signature(construct).replace(  # type: ignore[attr-defined]
            parameters=[first, *keywords.values()]
        )
        return init

    return decorate


def milliseconds(duration: DurationLike) -> int:
    """Return a duration in milliseconds.

    >>> milliseconds("5s"), milliseconds(5)
    (5000, 5)
    """
    return parse_duration(duration) if isinstance(duration, str) else duration


def _count_or_duration(text: str) -> int | str:
    """Return a number of things as an integer, and a duration above 0 as text with its unit.

    >>> _count_or_duration("7"), _count_or_duration("PT0.08S")
    (7, '80ms')
    """
    if not has_unit(text):
        return int(text)
    try:
        duration = parse_duration(text) if any(map(str.isalpha, text)) else 0
    except ValueError:
        duration = 0
    if duration < 1:
        raise ValueError("it is neither a number nor a duration such as 80ms")
    return format_duration(duration)


def _default(known: Option) -> str:
    if known.default is None:
        return f"By default {known.unset}."
    return f"Default {known.default!r}."


def _of_type(value: Any, kinds: tuple[object, ...]) -> Any:  # noqa: ANN401 - of any type
    """Return a value, a number as the type that an option has; raise `ValueError` for another."""
    if bool in kinds:
        if not isinstance(value, bool):
            raise ValueError("it must be true or false")
    elif int in kinds:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ValueError("it must be a whole number")
        return int(value)
    elif float in kinds:
        if isinstance(value, bool) or not isinstance(value, Real) or isnan(value):
            raise ValueError("it must be a number")
        return float(value)
    elif _is_of_text(*kinds) and not isinstance(value, (str, PathLike)):
        raise ValueError("it must be a text")
    return value


def _is_of_text(kind: object, *parts: object) -> bool:
    return kind is str or (isinstance(kind, UnionType) and set(parts) <= {str, Path, type(None)})


def _alternatives(kind: object) -> tuple[object, ...]:
    """Return the members of a union, or the type itself."""
    return (kind, *get_args(kind))


def _is_literal(kind: object) -> bool:
    return getattr(kind, "__origin__", None) is Literal
