"""The local driver: the answers of a stream that also has elements that are set aside."""

from __future__ import annotations

from rsp_engine.engine import Engine
from rsp_engine.model.answers import Solutions

EX = "http://example.org/"
COUNTED = f"""PREFIX : <{EX}> SELECT ?v
    FROM NAMED WINDOW :w ON :s [ELEMENTS 2] WHERE {{ WINDOW :w {{ ?x :p ?v }} }}"""


def said(value: object) -> str:
    return f"<{EX}a> <{EX}p> {value} ."


def answered(engine: Engine) -> list[tuple[int, list[str]]]:
    """Return the close and the values of each answer."""
    return [
        (a.window.close, [row.bindings["v"].value for row in a.content.rows])
        for a in engine.run()
        if isinstance(a.content, Solutions)
    ]


def test_a_window_of_so_many_things_is_answered_though_the_last_element_is_set_aside():
    """s: 1 2    where 2 holds a triple inside another; the window is not full at the end."""
    letters: list[str] = []
    engine = Engine(dead_letter=lambda letter: letters.append(letter.reason))
    engine.register(COUNTED)
    engine.bind(f"{EX}s", [(1, said(1)), (2, said(f"<<( <{EX}a> <{EX}p> 1 )>>"))])
    assert answered(engine) == [(1, ["1"])]
    assert letters == ["unsupported: a triple inside another"]
