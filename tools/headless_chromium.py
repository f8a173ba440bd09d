"""A headless Chromium, driven through its debugging pipe: Python's standard library is enough.

Used by tools/export-figures and by the tests of the report. With networking set to offline, and every request noted.
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
         "--remote-debugging-pipe"]


class BrowserError(Exception):
    pass


class Browser:
    """One page. `with Browser() as browser: browser.open(path)`; events are kept in `events`."""

    def __init__(self, timeout=60):
        program = shutil.which("chromium")
        if not program:
            raise BrowserError("chromium: not found; Debian package: chromium (tools/install-dependencies --test)")
        self.timeout = timeout
        self.events = []
        self.last_id = 0
        self.buffer = b""
        self.folder = tempfile.mkdtemp(prefix="pumice-chromium-")
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{read_commands} 4>&{write_answers}; exec "$0" "$@"', program, *FLAGS,
             f"--user-data-dir={self.folder}", "about:blank"],
            pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_answers)
        os.set_blocking(self.answers, False)
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Network", "Log"]:
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        """The next message, or None when the time is over."""
        while b"\0" not in self.buffer:
            try:
                piece = os.read(self.answers, 1 << 20)
                if not piece:
                    raise BrowserError("chromium: ended unexpectedly")
                self.buffer += piece
            except BlockingIOError:
                if time.monotonic() > deadline:
                    return None
                time.sleep(0.005)
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        deadline = time.monotonic() + self.timeout
        while True:
            message = self.receive(deadline)
            if message is None:
                raise BrowserError(f"chromium: no answer to {method} within {self.timeout} s")
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise BrowserError(f"chromium: {method}: {message['error']['message']}")
                return message["result"]
            if "method" in message:
                self.events.append(message)

    def evaluate(self, expression):
        """The value of a JavaScript expression, which may be a promise."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def open(self, path, width=1400, height=1000, scheme="light"):
        """Opens a file and waits until it is loaded."""
        self.events.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Page.navigate", url=f"file://{os.path.abspath(path)}")
        deadline = time.monotonic() + self.timeout
        while not self.seen("Page.loadEventFired"):
            message = self.receive(deadline)
            if message is None:
                raise BrowserError(f"{path}: was not loaded within {self.timeout} s")
            if "method" in message:
                self.events.append(message)

    def seen(self, method):
        return [event["params"] for event in self.events if event["method"] == method]

    def screenshot(self, path):
        """The whole page, however long."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self.send("Page.printToPDF", printBackground=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
