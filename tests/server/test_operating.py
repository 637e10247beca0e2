"""The files of docs/how-to/operating.md: their syntax, and whether their metrics exist."""

import configparser
import json
import re
import shlex

import yaml  # type: ignore[import-untyped]

from rsp_engine.model.option import declared
from rsp_engine.server.options import ServeOptions
from rsp_engine.server.web.exposition import METRICS
from tests.documents import page

TEXT = page("operating.md").read_text(encoding="utf-8")
BLOCKS = {
    language: re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    for language in ("ini", "dockerfile", "yaml", "json")
}
FLAGS = {"--" + known.name.replace("_", "-") for known in declared(ServeOptions)}
_METRIC = re.compile(r"\brsp_[a-z_]+")


class UnitFile(configparser.RawConfigParser):
    def optionxform(self, optionstr):
        return optionstr


def flags_in(command):
    return {word for word in command if word.startswith("--")}


def test_the_unit_of_systemd_starts_the_server():
    [text] = BLOCKS["ini"]
    unit = UnitFile(strict=True)
    unit.read_string(text)
    assert unit.sections() == ["Unit", "Service", "Install"]
    command = shlex.split(unit["Service"]["ExecStart"])
    assert command[1] == "serve"
    assert flags_in(command) <= FLAGS
    assert unit["Service"]["KillMode"] == "mixed"


def test_the_dockerfile_has_instructions_of_docker():
    [text] = BLOCKS["dockerfile"]
    found = {}
    for line in text.strip().splitlines():
        instruction, _, rest = line.partition(" ")
        assert instruction in (
            *("FROM", "RUN", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL"),
            "ENTRYPOINT",
        )
        found[instruction] = rest
    assert next(iter(found)) == "FROM"
    command = json.loads(found["ENTRYPOINT"])
    assert command[:2] == ["rsp", "serve"]
    assert flags_in(command) <= FLAGS
    json.loads(found["HEALTHCHECK"].partition("CMD ")[2])


def metrics_in(expression):
    return {name.removesuffix("_bucket") for name in _METRIC.findall(expression)}


def test_prometheus_scrapes_the_metrics_and_its_rules_name_them():
    scraped, rules = map(yaml.safe_load, BLOCKS["yaml"])
    [job] = scraped["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert scraped["rule_files"] == ["rsp-alerts.yml"]
    for rule in rules["groups"][0]["rules"]:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert metrics_in(rule["expr"]) <= METRICS
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_panels_of_grafana_show_metrics_that_there_are():
    [text] = BLOCKS["json"]
    dashboard = json.loads(text)
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids) >= 8
    for panel in dashboard["panels"]:
        assert panel["gridPos"].keys() == {"x", "y", "w", "h"}
        for target in panel["targets"]:
            names = metrics_in(target["expr"])
            assert names
            assert names <= METRICS
            assert target["expr"].count("(") == target["expr"].count(")")
