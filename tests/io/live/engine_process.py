"""An engine to kill: `python -m tests.io.live.engine_process URL FOLDER LAST [RUNNER]`.

It writes the numbers of the messages of each second to a file, with a checkpoint, until it has
answered the window that closes at LAST, in seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.engine import Engine
from rsp_engine.io.sinks import DeadLetterFile, open_sink

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :all AS SELECT ?number
FROM NAMED WINDOW :w ON STREAM :messages [RANGE 1s STEP 1s]
WHERE {{ WINDOW :w {{ ?message :says ?number }} }}"""


def new_engine(url: str, folder: Path, runner: Any, dead_letter: Any = None) -> Engine:
    # Repeated messages are out of order: the delay keeps them from being late.
    engine = Engine(
        runner=runner,
        master="local[1]",
        checkpoint=folder / "checkpoint",
        max_delay=5_000,
        dead_letter=dead_letter,
    )
    engine.register(QUERY)
    engine.bind(f"{EX}messages", url)
    return engine


def main(url: str, folder: Path, last: int, runner: str) -> None:
    letters = DeadLetterFile(str(folder / "letters.jsonl"), keep=True)

    def write(letter: DeadLetter) -> None:
        letters.write(letter)

    engine = new_engine(url, folder, runner, write)
    sink = open_sink("jsonl", str(folder / "answers.jsonl"), "SELECT", keep=True)
    for answer in engine.run([sink, letters]):
        sink.write(answer)
        if answer.window.close >= 1000 * last:
            engine.stop()
    sink.close()
    letters.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), (*sys.argv[4:], "local")[0])
