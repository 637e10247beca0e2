"""Flink SQL, over CSV: a streaming query over hopping windows, with a top-n of each window.

Sums share their panes by themselves; a top-n does not, so that of each pane is computed first.
Repeated triples count as often as they occur, so sums differ from those of RSP-QL.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby

from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.peers.task import Task, read_task, write_answers

# Windows of Flink include their left edge, those of RSP-QL the right one. The head of the file is
# read as an event without a value at time 0.
EVENTS = """create table events (subject string, `value` bigint, `time` bigint,
    ts as to_timestamp_ltz(coalesce(`time`, 1) - 1, 3), watermark for ts as ts) with (
    'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv',
    'csv.ignore-parse-errors' = 'true')"""
PANES = """create view panes as select window_time pane, subject, `value` from ({ranked})"""
HOP = """table(hop(table {table}, descriptor({time}), interval '{step}' second(4),
    interval '{range}' second(4)))"""
TUMBLE = "table(tumble(table events, descriptor(ts), interval '{step}' second(4)))"
SUM = """select window_start, window_end, subject, sum(`value`) `value` from {windows}
    where `value` is not null group by window_start, window_end, subject"""
RANKED = """select * from (
    select *, row_number() over (partition by window_start, window_end order by `value` desc) r
    from {rows}) where r <= {limit} and `value` is not null"""
ANSWERS = "select cast(window_end as string), subject, `value` from ({ranked})"


def ranking(task: Task, tables: TableEnvironment) -> str:
    """Create the views of panes, and return the query for the rows of all windows."""
    sizes = {"step": task.step_s, "range": task.range_s}
    if task.kind == "sum":
        windows = HOP.format(table="events", time="ts", **sizes)
        rows = f"({SUM.format(windows=windows)})"
    else:
        panes = RANKED.format(rows=TUMBLE.format(**sizes), limit=task.limit)
        tables.execute_sql(PANES.format(ranked=panes))
        rows = HOP.format(table="panes", time="pane", **sizes)
    return ANSWERS.format(ranked=RANKED.format(rows=rows, limit=task.limit))


def main() -> None:
    """Answer the task."""
    task = read_task()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = tables.get_config()
    settings.set("parallelism.default", "2")
    settings.set("table.local-time-zone", "UTC")
    tables.execute_sql(EVENTS.format(path=task.csv))
    with tables.execute_sql(ranking(task, tables)).collect() as found:
        rows = [(milliseconds(end), subject, value) for end, subject, value in found]
    rows.sort(key=lambda row: (row[0], -row[2]))
    windows = groupby(rows, lambda row: row[0])
    write_answers(task, ((close, [row[1:] for row in of]) for close, of in windows))


def milliseconds(text: str) -> int:
    """Return an instant, written as `1970-01-01 00:00:10.000`, in ms."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


if __name__ == "__main__":
    main()
