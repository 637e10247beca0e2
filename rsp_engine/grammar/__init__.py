"""The language: RSP-QL text to a syntax tree and back, and everything that can be wrong with it."""

from rsp_engine.grammar.validate import Validation, check, parse, validate
from rsp_engine.grammar.write import serialise, to_sparql

__all__ = ["Validation", "check", "parse", "serialise", "to_sparql", "validate"]
