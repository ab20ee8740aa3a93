"""Every page in a real Chromium: axe-core finds no serious fault, the console is silent, nobody else is asked."""

import os
import shutil
import signal
import subprocess
import sys
from urllib.parse import quote, urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from markdown_it import MarkdownIt
from playwright.sync_api import sync_playwright
from size_builders import sizes
from web_builders import Names, run_uid

from perftrack.ci.comment import report_body
from perftrack.pipeline.reports import report_of
from perftrack.store import Store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

TOKEN = "correct-horse-battery-staple"  # noqa: S105 - opens nothing
CASE = quote(Names().cases[0])
PAGES = (
    "", "runs", "cases", "regressions?state=all", "regressions?id=1", "compare?base=00000a1&head=00000a2&show=all",
    "roofline", "fusion", "fusion?suite=chains&benchmark=chain", "devices", "data", f"run?id={run_uid(2)}",
    "commit?sha=00000a3", "progress?id=latest", f"case?case={CASE}", "case?case=no", "run",
)  # fmt: skip
COLOURED = ("", "regressions?state=all", "roofline", f"run?id={run_uid(2)}", "progress?id=latest", f"case?case={CASE}")
LOOKS = (("light", 1280), ("dark", 390))


@pytest.fixture(scope="module")
def address(with_red, tmp_path_factory):
    """Of a server with a token, so that there are forms; its store has a red, and benchmarks of many sizes."""
    path = tmp_path_factory.mktemp("looked") / "perf.db"
    shutil.copy(with_red, path)
    with Store.open(str(path)) as store:
        sizes(store, 9)
    command = [sys.executable, "-m", "perftrack", "serve", "--port", "0", "--db", str(path)]
    environment = {**os.environ, "PERFTRACK_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        yield server.stdout.readline().split()[0]
        server.send_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Visitor:
    """One page of the browser, and what it did beside what it was told to."""

    def __init__(self, browser, address, scheme, width):
        self.address = address
        # what is dark differs in colours only
        self.rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
        self.page = self.context.new_page()
        self.said, self.elsewhere = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", self._asked)

    def _asked(self, request):
        if urlsplit(request.url).netloc != urlsplit(self.address).netloc and not request.url.startswith("data:"):
            self.elsewhere.append(request.url)

    def sign_in(self):
        self.page.get_by_label("Token").fill(TOKEN)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(self.address)

    def faults(self):
        """Serious and critical ones, by rule, with the elements."""
        # the page forbids scripts; what a test evaluates is none of the page's
        self.page.evaluate(AXE_SCRIPT)
        found = self.page.evaluate("rules => axe.run({resultTypes: ['violations'], ...rules})", self.rules)[
            "violations"
        ]
        return {
            one["id"]: [node["html"][:200] for node in one["nodes"]]
            for one in found
            if one["impact"] in ("serious", "critical")
        }

    def is_wider_than_the_window(self):
        return self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_no_serious_fault_no_noise_nobody_else(browser, address, scheme, width):
    visitor = Visitor(browser, address, scheme, width)
    visitor.page.goto(address)
    assert visitor.faults() == {}
    visitor.said.clear()  # that the first page asks for the token is an error of the network to Chromium
    visitor.sign_in()
    faults, wide = {}, []
    for path in PAGES:
        visitor.page.goto(address + path)
        assert visitor.page.locator("h1").count() == 1
        if scheme == "light" or path in COLOURED:
            faults |= {(path, rule): nodes for rule, nodes in visitor.faults().items()}
        wide += [path] if visitor.is_wider_than_the_window() else []
    visitor.page.evaluate("document.querySelector('h1').style = 'color: #888; background: #777'")
    assert set(visitor.faults()) == {"color-contrast"}
    visitor.context.close()
    assert faults == {}
    assert wide == []
    # the two last pages are answers of 404 and 400 on purpose
    assert [text for text in visitor.said if "status of 40" not in text] == []
    assert len(visitor.said) == 2
    assert visitor.elsewhere == []


def test_from_the_comment_two_clicks_to_the_picture_and_no_more_than_three_to_the_command(browser, address, with_red):
    with Store.open(str(with_red)) as store:
        body = report_body(report_of(store, run_uid(2)), job="perf", limit=60_000, web=address.rstrip("/"))
    visitor = Visitor(browser, address, "light", 1280)
    page = visitor.page
    page.goto(address)
    visitor.sign_in()
    page.route("https://code.example/**", lambda route: route.fulfill(
        content_type="text/html", body=MarkdownIt("commonmark", {"html": True}).render(body)))  # fmt: skip
    page.goto("https://code.example/pull/12")
    page.get_by_role("link", name="Pictures and histories").click()
    assert page.locator("h1").inner_text().startswith("RED")
    page.get_by_role("link", name="history of the case").first.click()
    picture = page.locator("figure svg").first
    assert picture.is_visible()
    assert (picture.locator("title").text_content() or "").startswith(f"speedup of {Names().cases[0]}")
    page.get_by_role("link", name="00000a2").first.click()
    assert "perftrack submit elementwise -k" in page.locator("pre code").first.inner_text()
    visitor.context.close()
