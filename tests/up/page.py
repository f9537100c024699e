#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The page at GET / of the admin port: the version, the node, and links, each of which leads somewhere. Last line N passed,
# N failed. page.py ADDRESS: where a node listens; TETRAD_BIN: where tetrad is.
import html.parser
import json
import re
import subprocess
import sys
import urllib.error
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/tls"))
from node import BIN, Node, direct, run_in_folder, wait_until  # noqa: E402

ADDRESS = sys.argv[1]
NEED_MORE = {"/endpoints", "/cidr-groups-of"}  # these answer a question only
results = {"passed": 0, "failed": 0}


def check(holds, what, detail=""):
    results["passed" if holds else "failed"] += 1
    print("%s page: %s%s" % ("ok    " if holds else "FAILED", what, "" if holds else ": %s" % (detail,)))


class Page(html.parser.HTMLParser):
    """Texts by the element that they are in, and where links lead."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.texts, self.links, self.strange = [], {}, [], []
        self.feed(text)
        check(not self.inside and not self.strange, "every element ends", (self.inside, self.strange))

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        if tag == "a":
            self.links.append(dict(attributes)["href"])

    def handle_endtag(self, tag):
        if self.inside[-1:] == [tag]:
            self.inside.pop()
        else:
            self.strange.append(tag)

    def handle_data(self, data):
        if self.inside:
            self.texts.setdefault(self.inside[-1], []).append(data)


def answers(path):
    try:
        return direct.open("http://%s:9180%s" % (ADDRESS, path), timeout=5).status == 200
    except urllib.error.HTTPError:
        return False


def main(top):
    version = subprocess.run([BIN / "tetrad", "--version"], capture_output=True, text=True).stdout.split()
    node = Node(top, ADDRESS, "--cluster-name", "<of & one>", "--rack", "<b>r")
    try:
        wait_until("/ready", lambda: answers("/ready"))  # its clock is compared first
        with direct.open("http://%s:9180/" % ADDRESS, timeout=5) as answer:
            check(answer.headers["Content-Type"] == "text/html; charset=utf-8", "it is HTML", answer.headers)
            page = Page(answer.read().decode())
        for element in "title", "h1":
            check(page.texts[element] == ["Tetrad " + version[1]], "the version of tetrad --version in <%s>" % element, (page.texts, version))
        check(any("Cluster <of & one>: serving" in text for text in page.texts["p"]), "the cluster and its health", page.texts["p"])
        check(page.texts["td"] == [ADDRESS + " (this node)", "live", "normal", "datacenter1", "<b>r"], "the node", page.texts["td"])
        routes = set(re.findall(r'"GET",\s*"(/[^"]*)"', (TOP / "server/admin/admin_service.cc").read_text()))
        check(len(page.links) > 10 and set(page.links) == routes - NEED_MORE - {"/"}, "links to all that is read by GET",
              routes ^ set(page.links))
        for link in page.links:
            try:
                with direct.open("http://%s:9180%s" % (ADDRESS, link), timeout=5) as answer:
                    kind, text = answer.headers["Content-Type"], answer.read().decode()
                holds = text and (json.loads(text) is not None if kind == "application/json" else kind.startswith("text/plain"))
                check(holds, "%s leads somewhere" % link, (kind, text))
            except (urllib.error.HTTPError, ValueError) as error:
                check(False, "%s leads somewhere" % link, error)
    finally:
        node.stop()


run_in_folder(main, check, results)
