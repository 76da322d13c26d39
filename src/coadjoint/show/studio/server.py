"""The server of the studio: one page and one door for questions, on this machine only.

Whoever asks must know the token that was drawn when the server started, name this host, and come from this page: other pages in the
same browser can neither read it nor ask it. No file is ever served.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import webbrowser
from collections.abc import Callable
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...errors import CoadjointError
from ...kinematics import pose
from ...robot.robot import Robot

LARGEST = 2**25
"""The largest question in bytes: the log of a robot."""
SLOWEST = 30.0
"""Seconds after which a connection that says nothing is closed."""


class Studio(ThreadingHTTPServer):
    """The server for one robot; `url` is where its page is. Whoever asks before the page is made waits for it."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, robot: Robot, port: int = 0, *, source: str = "") -> None:
        self.robot = robot
        self.token = secrets.token_urlsafe(24)
        self.turn = threading.Lock()
        try:
            super().__init__(("127.0.0.1", port), Door)
        except OSError as error:
            raise CoadjointError(f"port {port} cannot be used: {error.strerror}; choose another with --port, or none.") from None
        self.hosts = {f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}"}
        self.source = source
        self.seen = threading.Event()

    @cached_property
    def page(self) -> bytes:
        """The page of the robot, made once."""
        from ..report import page_text

        return page_text(self.robot, source=self.source, entry="studio", connect="'self'", more={"token": self.token}).encode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer, or {"error": …} for what cannot be answered."""
        from .questions import QUESTIONS

        ask = QUESTIONS.get(question.get("ask", "")) if isinstance(question.get("ask"), str) else None
        if ask is None:
            return {"error": f"unknown question; expected one of: {', '.join(QUESTIONS)}."}
        try:
            with self.turn:
                return ask(self.robot, question)
        except CoadjointError as error:
            return {"error": str(error)}

    def warm(self) -> None:
        """Compile what a first drag needs, while the page is looked at: not before it is."""
        from ..page.model import shown_frame, start

        self.seen.wait()
        q, frame = start(self.robot), self.robot.frame_names[shown_frame(self.robot)]
        place = pose(self.robot, q, frame)
        self.answer({"ask": "reach", "q": q.tolist(), "frame": frame, "position": place[:3, 3].tolist(), "turn": True})

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that disconnects in the middle of an answer is no error; any other error is printed in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"coadjoint: studio: {error!r}", file=sys.stderr)


class Door(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "coadjoint"
    sys_version = ""
    timeout = SLOWEST
    wbufsize = 65536
    disable_nagle_algorithm = True  # an answer waits for nothing: it leaves in one piece, at once
    server: Studio

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        if not self._host_is_ours():
            return
        if where.path != "/":
            return self._refuse(404, "there is nothing here")
        if not self._is_token(parse_qs(where.query).get("token", [""])[0]):
            return self._refuse(403, "this address needs the token that the command `coadjoint studio` printed")
        self._send(200, "text/html; charset=utf-8", self.server.page)
        self.server.seen.set()

    def do_POST(self) -> None:
        if not self._host_is_ours():
            return
        if self.headers.get("Origin") not in {f"http://{host}" for host in self.server.hosts}:
            return self._refuse(403, "only the page of the studio may ask")
        if self.path != "/ask":
            return self._refuse(404, "there is nothing here")
        if not self._is_token(self.headers.get("X-Coadjoint-Token", "")):
            return self._refuse(403, "the token is missing or wrong")
        if self.headers.get_content_type() != "application/json":
            return self._refuse(415, "a question is JSON")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST:
            return self._refuse(413, f"a question has at most {LARGEST} bytes")
        try:
            question = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self._refuse(400, "a question is JSON")
        if not isinstance(question, dict):
            return self._refuse(400, "a question is a JSON object")
        try:
            text = json.dumps(self.server.answer(question), allow_nan=False)
        except Exception as error:  # whatever a question brings about, the server stays
            print(f"coadjoint: studio: {question.get('ask')}: {error!r}", file=sys.stderr)
            text = json.dumps({"error": f"this could not be computed: {error}"})
        self._send(200, "application/json", text.encode())

    def _host_is_ours(self) -> bool:
        """Names of other hosts that lead here belong to pages that want to pass for this one."""
        if self.headers.get("Host") in self.server.hosts:
            return True
        self._refuse(421, "this host is not served")
        return False

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self.server.token.encode())

    def _refuse(self, status: int, reason: str) -> None:
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", f"{reason}\n".encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: sixty questions a second are asked while a hand is dragged."""


def serve(robot: Robot, port: int = 0, *, browser: bool = True, source: str = "", tell: Callable[[str], None] = print) -> None:
    """Serve the studio of a robot on this machine until it is interrupted.

    A browser takes its time to open: the page is made meanwhile, and the request for it waits.
    """
    with Studio(robot, port, source=source) as studio:
        tell(f"the studio of {robot.name!r} is at {studio.url}")
        tell("Ctrl-C ends it")
        if browser:
            webbrowser.open(studio.url)
        try:
            assert studio.page
            threading.Thread(target=studio.warm, daemon=True).start()
            studio.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            tell("the studio is closed")
