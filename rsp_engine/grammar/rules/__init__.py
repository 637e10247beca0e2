"""The semantic rules of RSP-QL, for queries that parse.

A rule is a function that takes a query and yields a finding for each place that breaks the rule.
`RULES` lists them all; the modules group them by subject: answers, names, windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.grammar.rules.answers import (
    conditions_are_bound,
    describe_is_not_streamable,
    groups_have_one_value,
    limit_ranks,
    modifiers_are_bound,
    variables_are_bound,
)
from rsp_engine.grammar.rules.finding import Finding
from rsp_engine.grammar.rules.names import (
    default_graph_has_content,
    functions_are_spelt,
    graph_is_read,
    graph_is_static,
    iris_are_absolute,
    names_are_distinct,
    prefix_is_declared_once,
    query_does_not_read_itself,
)
from rsp_engine.grammar.rules.windows import (
    query_reads_a_stream,
    window_has_a_size,
    window_has_units,
    window_is_declared,
    window_is_not_remote,
    window_is_used,
    window_leaves_no_gap,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.grammar.tree import QueryUnit

__all__ = ["RULES", "Finding"]

RULES: tuple[Callable[[QueryUnit], Iterator[Finding]], ...] = (
    describe_is_not_streamable,
    query_reads_a_stream,
    query_does_not_read_itself,
    names_are_distinct,
    prefix_is_declared_once,
    window_is_declared,
    window_is_used,
    window_has_a_size,
    window_has_units,
    window_leaves_no_gap,
    window_is_not_remote,
    graph_is_static,
    graph_is_read,
    default_graph_has_content,
    limit_ranks,
    variables_are_bound,
    modifiers_are_bound,
    conditions_are_bound,
    groups_have_one_value,
    functions_are_spelt,
    iris_are_absolute,
)
