"""The syntax tree: one frozen dataclass per construct, with its span, named as in SPARQL 1.1."""

from rsp_engine.grammar.tree.expressions import *
from rsp_engine.grammar.tree.node import *
from rsp_engine.grammar.tree.paths import *
from rsp_engine.grammar.tree.patterns import *
from rsp_engine.grammar.tree.queries import *
from rsp_engine.grammar.tree.terms import *
