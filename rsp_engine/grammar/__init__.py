"""The RSP-QL language: parser, syntax tree, validation rules and serialiser."""

from rsp_engine.grammar.validate import Validation, check, checked, parse, validate
from rsp_engine.grammar.write import serialise, to_sparql

__all__ = ["Validation", "check", "checked", "parse", "serialise", "to_sparql", "validate"]
