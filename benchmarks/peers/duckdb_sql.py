"""DuckDB, in batch: SQL over the file of N-Quads, of which each line is split by a CSV reader.

Each triple is ranked or summed in each of its windows; with `panes first`, panes are, and windows
from them. `DISTINCT` removes the triples that occur several times in a window, as the set semantics
of RSP-QL demand; without it, sums differ.
"""

from __future__ import annotations

import duckdb

from benchmarks.peers.task import Task, read_task, write_answers

LINES = r"""read_csv('{path}', delim='{delim}', quote='', escape='', header=false,
    auto_detect=false, columns={{{columns}}})"""
SPLIT = r"""select column0 s, cast(split_part(column2, '"', 2) as bigint) v,
    cast(regexp_extract(column3, '([0-9]+)>$', 1) as bigint) t
    from {lines} where column1 = '<{predicate}>'"""
MATCHED = r"""select m.s, cast(m.v as bigint) v, cast(m.t as bigint) t from (select regexp_extract(
    line, '^(<[^>]*>)\s+<{predicate}>\s+"(\d+)"\^\^<[^>]*>\s+<[^>]*?(\d+)>\s*\.', ['s', 'v', 't']) m
    from {lines}) where m.s <> ''"""
TOP_OF_PANES = """with p as (select * from pane qualify row_number()
        over (partition by pane order by v desc, t desc, s desc) <= {limit}),"""
SUM_OF_PANES = """with p as (select pane, s, sum(v) v, max(t) t from pane group by all),"""
TRIPLES = """with p as (select * from pane),"""
TOP = """{panes_first}
    w as (select pane + o.o win, s, v, t from p, range(0, {panes}) o(o))"""
SUM = """{panes_first}
    w as (select pane + o.o win, s, sum(v) v, max(t) t from p, range(0, {panes}) o(o)
        group by win, s)"""
DISTINCT_IN_PANES = """with p as (select pane, s, v, max(t) t from pane group by all),"""
SUM_OF_DISTINCT = """{panes_first}
    d as (select pane + o.o win, s, v, max(t) t from p, range(0, {panes}) o(o) group by win, s, v),
    w as (select win, s, sum(v) v, max(t) t from d group by win, s)"""
RANKED = """{windows} select win * {step} as close, s, v from w where win >= {panes}
    qualify row_number() over (partition by win order by v desc, t desc, s desc) <= {limit}
    order by win, v desc, t desc, s desc"""


def elements(task: Task) -> str:
    """Return the query for the subject, the value and the time of each triple that matches."""
    is_split = "lines" not in task.variant
    names = [f"column{number}" for number in range(5)] if is_split else ["line"]
    columns = ", ".join(f"'{name}': 'varchar'" for name in names)
    delim = " " if is_split else r"\x01"
    lines = LINES.format(path=task.stream, delim=delim, columns=columns)
    return (SPLIT if is_split else MATCHED).format(lines=lines, predicate=task.predicate)


def ranking(task: Task) -> str:
    """Return the query for the rows of all windows."""
    if task.kind == "top":
        windows, panes = TOP, TOP_OF_PANES
    elif "DISTINCT" in task.variant:
        windows, panes = SUM_OF_DISTINCT, DISTINCT_IN_PANES
    else:
        windows, panes = SUM, SUM_OF_PANES
    sizes = {"limit": task.limit, "panes": task.panes, "step": 1000 * task.step_s}
    first = (panes if "panes first" in task.variant else TRIPLES).format(**sizes)
    return RANKED.format(windows=windows.format(panes_first=first, **sizes), **sizes)


def main() -> None:
    """Answer the task."""
    task = read_task()
    connection = duckdb.connect(config={"threads": 2})
    step = 1000 * task.step_s
    connection.execute(
        f"create view pane as select (t + {step - 1}) // {step} pane, s, v, t"  # noqa: S608
        f" from ({elements(task)})" + (f" where v < {task.below}" if task.below else "")
    )
    answers: dict[int, list[tuple[str, int]]] = {}
    for close, subject, value in connection.execute(ranking(task)).fetchall():
        answers.setdefault(close, []).append((subject[1:-1], value))
    write_answers(task, answers.items())


if __name__ == "__main__":
    main()
