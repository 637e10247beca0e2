"""The syntax tree: one frozen dataclass per construct, each with its span, in SPARQL's words."""

from rsp_engine.grammar.tree.expressions import *
from rsp_engine.grammar.tree.node import *
from rsp_engine.grammar.tree.paths import *
from rsp_engine.grammar.tree.patterns import *
from rsp_engine.grammar.tree.queries import *
from rsp_engine.grammar.tree.terms import *
