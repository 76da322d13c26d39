"""A headless Chromium driven by its DevTools protocol, with nothing but the standard library."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-pings",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
]


def chromium() -> str | None:
    """The browser's program, if there is one."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class WebSocket:
    """A client's side of a connection: text messages only (RFC 6455)."""

    def __init__(self, url: str) -> None:
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        self.socket.sendall((head + "Sec-WebSocket-Version: 13\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        assert b"101" in self.file.readline()
        while self.file.readline().strip():
            pass

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        n = len(data)
        size = (
            bytes([128 | n])
            if n < 126
            else bytes([254]) + struct.pack(">H", n)
            if n < 65536
            else bytes([255]) + struct.pack(">Q", n)
        )
        pattern = (mask * (n // 4 + 1))[:n]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(n, "big") if n else b""
        self.socket.sendall(b"\x81" + size + mask + masked)

    def receive(self) -> str:
        parts = []
        while True:
            first, second = self.file.read(2)
            n = second & 127
            n = (
                struct.unpack(">H", self.file.read(2))[0]
                if n == 126
                else struct.unpack(">Q", self.file.read(8))[0]
                if n == 127
                else n
            )
            data = self.file.read(n)
            if first & 15 in (0, 1):
                parts.append(data)
                if first & 128:
                    return b"".join(parts).decode()

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Page:
    """One page: what it asks of the network, what it says to the console, and its JavaScript."""

    def __init__(self, url: str) -> None:
        self.connection = WebSocket(url)
        self.number = 0
        self.requests: list[str] = []
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        number = self.number
        self.connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.connection.receive())
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                return dict(message["result"])
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, given = message.get("method", ""), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(given["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            self.errors.append(json.dumps(given["args"])[:500])
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"dialog: {given['message']}")

    def open(self, url: str, ready: str = "window.coadjoint && coadjoint.pictures > 1") -> None:
        self.requests.clear()
        self.errors.clear()
        self.call("Page.navigate", url=url)
        self.wait(ready)

    def wait(self, condition: str, seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, (condition, self.errors)
            time.sleep(0.03)

    def run(self, code: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def size(self, width: int, height: int, dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=theme)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        held = {"mousePressed": 1, "mouseMoved": more.pop("buttons", 0), "mouseReleased": 0}.get(kind, 0)
        button = "left" if kind != "mouseMoved" or held else "none"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=held, clickCount=1, **more)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 6) -> None:
        """Press, move and release, as a hand does."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start)
        for k in range(1, steps + 1):
            self.mouse("mouseMoved", *(a + (b - a) * k / steps for a, b in zip(start, end, strict=True)), buttons=1)
        self.mouse("mouseReleased", *end)

    def click(self, selector: str) -> None:
        x, y = self.middle(selector)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def middle(self, selector: str) -> tuple[float, float]:
        box = self.run(f"(e => {{ e.scrollIntoView({{block: 'nearest'}}); const b = e.getBoundingClientRect();"
                       f" return [b.left, b.top, b.width, b.height] }})(document.querySelector({json.dumps(selector)}))")  # fmt: skip
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def picture(self, path: Path | None = None, kind: str = "png", **more: Any) -> bytes:
        data = base64.b64decode(self.call("Page.captureScreenshot", format=kind, **more)["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def settle(self) -> None:
        """Wait until the page has drawn twice more."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))")


class Browser:
    """A browser with a fresh profile, which is ended with all that it started."""

    def __init__(self) -> None:
        program = chromium()
        assert program
        self.folder = Path(tempfile.mkdtemp(prefix="browser-"))
        command = [program, *FLAGS, f"--user-data-dir={self.folder / 'profile'}", "about:blank"]
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        self.process = subprocess.Popen(command, env=os.environ | {"HOME": str(self.folder)}, **quiet)
        told = self.folder / "profile" / "DevToolsActivePort"
        end = time.monotonic() + 60
        while not (told.exists() and told.read_text().count("\n")):
            assert self.process.poll() is None, "the browser has ended"
            assert time.monotonic() < end, "the browser does not answer"
            time.sleep(0.05)
        self.port = int(told.read_text().split()[0])

    def page(self) -> Page:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"])

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
            time.sleep(0.1)
