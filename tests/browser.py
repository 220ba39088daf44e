"""A headless Chromium for tests of pages, controlled through a pipe by Chrome's DevTools protocol."""

import json
import os
import shutil
import subprocess
import sys

import pytest

EXECUTE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in enumerate(ends, 3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one open page."""

    def __init__(self, folder):
        name = shutil.which("chromium") or shutil.which("google-chrome")
        if name is None:
            pytest.skip("no Chromium is installed")
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", EXECUTE, str(theirs_in), str(theirs_out), name, *options, "--remote-debugging-pipe"],
            pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.to, self.of = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.number, self.session, self.events = 0, {}, []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = {"sessionId": self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self(f"{domain}.enable")

    def read(self):
        letters = []
        while (letter := self.of.read(1)) != b"\0":
            assert letter, "the browser has ended"
            letters.append(letter)
        return json.loads(b"".join(letters))

    def __call__(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **self.session}
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while (answer := self.read()).get("id") != self.number:
            self.events.append(answer["method"])
        assert "error" not in answer, answer
        return answer["result"]

    def evaluate(self, expression):
        return self("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, path):
        self("Page.navigate", url=f"file://{path}")
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.read()["method"])
        self.events.remove("Page.loadEventFired")

    def resize(self, width, height=900):
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """Ask for a page in a "light" or "dark" scheme."""
        self("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def tab(self):
        for kind in ("rawKeyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def close(self):
        self.process.kill()
        self.process.wait(60)
        self.to.close()
        self.of.close()
