"""The namespace of XML Schema's datatypes. It imports nothing, so `rsp validate` stays quick."""

from __future__ import annotations

__all__ = ["XSD", "XSD_STRING"]

XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING = XSD + "string"
