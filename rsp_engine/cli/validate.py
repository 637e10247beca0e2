"""`rsp validate`: checking queries without running them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from rsp_engine.cli.app import EXIT_USER_ERROR, OutputFormat, command_app
from rsp_engine.errors import Diagnostic, QueryError, QueryFileError, Span, position, render
from rsp_engine.grammar import Validation, validate
from rsp_engine.grammar.summary import summary
from rsp_engine.grammar.validate import read_query

__all__ = ["validate_files"]


app = command_app()


@app.command("validate")
def validate_files(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="RSP-QL files; - is standard input.")
    ],
    output: Annotated[
        OutputFormat, typer.Option("--format", help="text for people, json for editors.")
    ] = OutputFormat.text,
) -> None:
    """Check queries without running them: exit 0 if all are good, 2 if one is not.

    With --format json one array is printed, with an object per file:
    {file, ok, errors: [{kind, line, column, message, hint}], warnings: [...]}.
    A file that cannot be read has one error of kind "syntax" at line 1, column 1.
    """
    rows = []
    for file in files:
        text, result = _validate(file)
        rows.append(_as_json(file, text, result))
        if output is OutputFormat.text:
            _print(file, text, result)
    if output is OutputFormat.json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    if not all(row["ok"] for row in rows):
        raise typer.Exit(EXIT_USER_ERROR)


def _validate(file: str) -> tuple[str | None, Validation]:
    """Return the text of a file, None if it cannot be read, and its diagnostics."""
    try:
        text = read_query(file)
    except QueryFileError as error:
        unreadable = Diagnostic("syntax", error.message, Span(0, 0), error.hint)
        return None, Validation(None, (unreadable,))
    except QueryError as error:
        return error.text, Validation(None, error.diagnostics)
    return text, validate(text)


def _as_json(file: str, text: str | None, result: Validation) -> dict[str, Any]:
    def as_data(diagnostic: Diagnostic) -> dict[str, Any]:
        start = position(text or "", diagnostic.span.start)
        return {
            "kind": diagnostic.kind,
            "line": start.line,
            "column": start.column,
            "message": diagnostic.message,
            "hint": diagnostic.hint,
        }

    return {
        "file": file,
        "ok": not result.errors,
        "errors": [as_data(d) for d in result.errors],
        "warnings": [as_data(d) for d in result.warnings],
    }


def _print(file: str, text: str | None, result: Validation) -> None:
    for diagnostic in result.errors:
        if text is None:
            hint = "" if diagnostic.hint is None else f"\n  = hint: {diagnostic.hint}"
            typer.echo(f"{file}: error: {diagnostic.message}{hint}", err=True)
        else:
            typer.echo(render(diagnostic, text, file), err=True)
    for diagnostic in result.warnings:
        typer.echo(render(diagnostic, text or "", file, "warning"), err=True)
    if result.query is not None and not result.errors:
        typer.echo(f"{file}: ok: {summary(result.query)}")
