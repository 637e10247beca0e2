"""Spark SQL, in batch: the file of N-Quads as a table, whose lines are split at spaces.

Panes are ranked or summed first, and windows from them. Repeated triples count as often as they
occur, so sums differ from those of RSP-QL.
"""

from __future__ import annotations

from itertools import groupby

from pyspark.sql import SparkSession

from benchmarks.peers.task import Task, read_task, write_answers

PANES = """select (t + {step} - 1) div {step} pane, s, v, t from (
    select _c0 s, cast(split(_c2, '"')[1] as bigint) v,
        cast(regexp_extract(_c3, '([0-9]+)>$', 1) as bigint) t
    from lines where _c1 = '<{predicate}>')"""
TOP = """select pane, s, v, t from (
    select *, row_number() over (partition by pane order by v desc, t desc, s desc) r from panes)
    where r <= {limit}"""
SUM = "select pane, s, sum(v) v, max(t) t from panes group by pane, s"
WINDOWS = """select pane + o win, s, v, t from reduced
    lateral view explode(sequence(0, {panes} - 1)) as o"""
SUM_OF_WINDOWS = "select win, s, sum(v) v, max(t) t from ({windows}) group by win, s"
RANKED = """select win * {step} close, s, v from (
    select *, row_number() over (partition by win order by v desc, t desc, s desc) r
    from ({windows}))
    where r <= {limit} and win >= {panes} order by close, r"""


def ranking(spark: SparkSession, task: Task) -> str:
    """Register the panes as views, and return the query for the rows of all windows."""
    step, limit, panes = 1000 * task.step_s, task.limit, task.panes
    spark.sql(PANES.format(step=step, predicate=task.predicate)).createOrReplaceTempView("panes")
    reduced = TOP.format(limit=limit) if task.kind == "top" else SUM
    spark.sql(reduced).createOrReplaceTempView("reduced")
    windows = WINDOWS.format(panes=panes)
    if task.kind == "sum":
        windows = SUM_OF_WINDOWS.format(windows=windows)
    return RANKED.format(step=step, windows=windows, limit=limit, panes=panes)


def main() -> None:
    """Answer the task."""
    task = read_task()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    lines = spark.read.csv(task.stream, sep=" ", quote="", escape="")
    lines.createOrReplaceTempView("lines")
    rows = spark.sql(ranking(spark, task)).collect()
    spark.stop()
    windows = groupby(rows, lambda row: row.close)
    write_answers(task, ((close, [(row.s[1:-1], row.v) for row in of]) for close, of in windows))


if __name__ == "__main__":
    main()
