"""Names of kernels, ranges, groups, hosts and files are text of strangers in every output."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import Run
from field import GEMM, base
from make import TraceBuilder
from render_in_browser import BROWSER, dom

from analyzer.report import document

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=http://127.0.0.1:PORT/a onerror=x()>"
    "<svg onload=document.title='owned'>\"'`|]] ]]> --> {{ 7*7 }} [a](http://127.0.0.1:PORT/b) "
    "![b](http://127.0.0.1:PORT/c) <!-- @everyone \x1b]0;owned\x07\x1b[31mred\x9b31m\r\n"
    "\u202egnp.exe\u2066\u200b &lt;b&gt;"
)
ELEMENTS = {"img", "iframe", "object", "embed", "link", "base", "form", "video", "audio"}


def hostile(port: int = 1) -> str:
    return HOSTILE.replace("PORT", str(port))


def spoiled(rank: int, port: int = 1) -> str:
    """A rank in which every text that a report shows is hostile."""
    name = hostile(port)

    def each(built: TraceBuilder, k: int, at: int) -> None:
        built.op(f"aten::{name}", at + 41, at + 60).annotation(name, at + 61, at + 70)
        built.event(f"fpga {name}", "dot", at + 71, at + 72)
        built.loader(at + 9000, at + 9500, iterator=name)

    built = base(rank, each=each, comm=f"nccl_allreduce {name}")
    built.top("deviceProperties", [{"id": rank, "name": name}]).top("host_name", name)
    built.top("cuda_driver_version", name).top("with_stack", 1)
    text = built.text().replace(GEMM, json.dumps(name)[1:-1])
    return text.replace('"Process Group Name": "0"', f'"Process Group Name": {json.dumps(name)}')


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run <b>&\x1b[31m"
    folder.mkdir()
    for rank in (0, 1):
        (folder / f"rank{rank}.json").write_text(spoiled(rank))
    (folder / "bad<img src=x>\x1b[31m.json").write_text("{}")
    return folder


class Page(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(key, value or "") for key, value in attrs]


def test_a_page_holds_names_as_text_alone(run: Path, tmp_path: Path, ceiling: Run) -> None:
    assert ceiling("analyze", run, "-o", tmp_path / "page.html").code == 0
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert ELEMENTS & set(page.tags) == set()
    assert [key for key, _ in page.attributes if key.startswith("on")] == []
    links = [value for key, value in page.attributes if key in ("href", "src", "action")]
    assert [link for link in links if "127.0.0.1" in link] == []
    assert page.tags.count("script") == 1
    assert re.findall(r"<script[^>]*>", text) == re.findall(
        r'<script [^>]*type="application/json"[^>]*>', text
    )
    assert "document.title" in text


def test_pictures_in_a_page_hold_names_as_text_alone(
    run: Path, tmp_path: Path, ceiling: Run
) -> None:
    ceiling("analyze", run, "-o", tmp_path / "page.html")
    for picture in re.findall(r"<svg.*?</svg>", (tmp_path / "page.html").read_text(), re.DOTALL):
        tags = {e.tag.rpartition("}")[2] for e in ElementTree.fromstring(picture).iter()}
        assert not tags & {"script", "image", "foreignObject", "a", "use"}


def test_a_comment_holds_no_markup_of_names(run: Path, tmp_path: Path, ceiling: Run) -> None:
    assert ceiling("analyze", run, "-o", tmp_path / "comment.md").code == 0
    text = (tmp_path / "comment.md").read_text()
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    allowed = {"details", "summary", "b", "sub", "sup", "br", "picture"}
    assert set(re.findall(r"(?<!\\)<([a-zA-Z]+)", outside)) <= allowed
    assert re.findall(r"(?<!\\)!?\[[^\]]*\]\((?!#)", outside) == []
    assert "@everyone" not in outside
    assert all(ord(c) >= 32 or c == "\n" for c in text)


@pytest.mark.parametrize(
    "command", [["analyze"], ["inspect"], ["analyze", "--format", "markdown"], ["-v", "analyze"]]
)
@pytest.mark.parametrize("colour", ["--color", "--no-color"])
def test_nothing_but_text_reaches_the_terminal(
    command: list[str], colour: str, run: Path, ceiling: Run
) -> None:
    ran = ceiling(colour, *command, run)
    assert ran.code == 0
    plain = re.sub(r"\x1b\[[\d;]*m", "", ran.out) if colour == "--color" else ran.out
    for stream in (plain, ran.err):
        assert [c for c in stream if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160] == []
        assert not set(stream) & set("\u202e\u2066\u200b")
    assert "\x1b]0;" not in ran.out + ran.err


def test_the_document_keeps_names_as_they_are(run: Path, tmp_path: Path, ceiling: Run) -> None:
    ceiling("analyze", run, "-o", tmp_path / "report.json")
    found = document.read(tmp_path / "report.json")
    assert any(kernel.name == hostile() for kernel in found.kernels)


@pytest.fixture
def requests() -> Iterator[tuple[int, list[str]]]:
    """A port of this machine, and what is asked for there."""
    asked: list[str] = []

    class Noted(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Noted)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1], asked
    server.shutdown()
    thread.join()
    server.server_close()


POLICIES = {
    "strict": "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'; script-src 'none'",
    "none": "",
}


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("policy", POLICIES)
def test_in_a_browser_no_script_runs_and_no_request_leaves(
    policy: str, requests: tuple[int, list[str]], tmp_path: Path, ceiling: Run
) -> None:
    port, asked = requests
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_text(spoiled(rank, port))
    ceiling("analyze", tmp_path, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    if POLICIES[policy]:
        meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICIES[policy]}">'
        page = page.replace("<head>", f"<head>{meta}", 1)
        assert meta in page
    shown = dom(tmp_path, page)
    (title,) = re.findall(r"<title>(.*?)</title>", shown, re.DOTALL)
    assert title.startswith("Nothing stands out: ")
    assert asked == []
    assert "<img" not in shown
    # The same browser does ask and run where it is told to.
    proof = (
        f"<title>a</title><img src='http://127.0.0.1:{port}/asked'>"
        "<script>document.title='owned'</script>"
    )
    assert "<title>owned</title>" in dom(tmp_path, proof)
    assert asked == ["/asked"]
