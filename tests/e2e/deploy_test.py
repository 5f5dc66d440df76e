"""deploy/: the dashboard is sound and every metric that it names is on the page of a running server.

usage: deploy_test.py DUNLIN MAKE_TINY_MODEL SOURCE_FOLDER"""

import configparser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from api_client import post  # noqa: E402
from running_server import RunningServer  # noqa: E402

DUNLIN, MAKE_TINY_MODEL, SOURCE = sys.argv[1:4]
DEPLOY = pathlib.Path(SOURCE) / "deploy"
METRIC = re.compile(r"\b(?:vllm:|dunlin:|process_|http_)[a-z0-9_]+")


class Deploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            model = str(pathlib.Path(folder) / "tiny.gguf")
            subprocess.run([MAKE_TINY_MODEL, model], check=True)
            with RunningServer(DUNLIN, model) as server:
                assert post(server, "/v1/completions", {"prompt": "a", "max_tokens": 3})[0] == 200
                cls.page = server.get("/metrics")[1]

    def samples(self):
        return set(re.findall(r"^([a-z_:0-9]+)(?:\{| )", self.page, re.M))

    def test_every_metric_of_the_dashboard_is_on_the_page(self):
        asked = set()
        for panel in self.dashboard["panels"]:
            for target in panel.get("targets", []):
                asked |= set(METRIC.findall(target["expr"]))
        for variable in self.dashboard["templating"]["list"]:
            asked |= set(METRIC.findall(variable.get("definition", "")))
        self.assertGreater(len(asked), 25)
        self.assertEqual(asked - self.samples(), set())

    def test_every_metric_of_the_docs_is_on_the_page(self):
        names = set(METRIC.findall((pathlib.Path(SOURCE) / "docs" / "operations.md").read_text()))
        bases = {re.sub("_(bucket|sum|count)$", "", name) for name in self.samples()}
        self.assertGreater(len(names), 25)
        self.assertEqual(names - bases - self.samples(), set())

    def test_the_dashboards_panels_are_whole(self):
        panels = self.dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells
            if panel["type"] == "row":
                continue
            self.assertTrue(panel["targets"], panel["title"])
            for target in panel["targets"]:
                for opening, closing in ("()", "[]", "{}"):
                    self.assertEqual(target["expr"].count(opening), target["expr"].count(closing), target["expr"])

    def test_the_unit_runs_a_server(self):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read(DEPLOY / "dunlin.service")
        self.assertTrue(unit["Service"]["ExecStart"].endswith("dunlin serve"))
        self.assertEqual(unit["Install"]["WantedBy"], "multi-user.target")

    def test_the_scrape_has_the_servers_place(self):
        text = (DEPLOY / "prometheus.yml").read_text()
        self.assertIn("metrics_path: /metrics", text)
        self.assertIn("127.0.0.1:8080", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
