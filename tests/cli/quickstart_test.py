"""Runs every command of docs/quickstart-own-model.md, in their order, on a folder of made-up pictures."""
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

SIZE = 32


def write_png(path, pixels):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in pixels)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0))
                     + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def picture(kind, rng):
    x0, y0, size = rng.randint(10, 22), rng.randint(10, 22), rng.randint(5, 9)
    colour = [rng.randint(100, 255) for _ in range(3)]

    def inside(x, y):
        dx, dy = abs(x - x0), abs(y - y0)
        return {"circle": dx * dx + dy * dy < size * size, "cross": min(dx, dy) < 2 and max(dx, dy) < size,
                "square": max(dx, dy) < size}[kind]

    return [[[min(255, c + rng.randint(0, 40)) if inside(x, y) else rng.randint(0, 90) for c in colour]
             for x in range(SIZE)] for y in range(SIZE)]


def main(tool, document):
    folder = pathlib.Path(tempfile.mkdtemp())
    rng = random.Random(1)
    for part, count in (("train", 30), ("test", 12)):
        for kind in ("circle", "cross", "square"):
            (folder / "photos" / part / kind).mkdir(parents=True)
            for i in range(count):
                write_png(folder / "photos" / part / kind / f"{i:03}.png", picture(kind, rng))
    (folder / "bin").mkdir()
    (folder / "bin" / "pumice").symlink_to(tool)
    (folder / "bin" / "python3").symlink_to(sys.executable)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    blocks = re.findall(r"```(sh|python)\n(.*?)```", pathlib.Path(document).read_text(), re.DOTALL)
    assert len(blocks) >= 8, f"{document}: {len(blocks)} blocks of code"
    printed = ""
    for language, code in blocks:
        if language == "python":
            (folder / "finetune.py").write_text(code)
            continue
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=folder, env={**os.environ, "PATH": path},
                              capture_output=True, text=True, timeout=300)
        printed += done.stdout
        assert done.returncode == 0, f"{code}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "circle" in printed, "data info lists the classes"

    audit = json.loads((folder / "audit.json").read_text())
    assert len(audit["references"]) == 3, audit["references"]
    values = {readout["id"]: readout for readout in audit["readouts"]}
    original, scrubbed = values["cohort_loss"]["original"], values["cohort_loss"]["value"]
    assert scrubbed > original, f"loss on the cohort: {original} before, {scrubbed} after forgetting"
    report = (folder / "report.html").read_text()
    assert "<html" in report and "train/circle/000.png" not in report
    print(f"cohort loss {original:.4f} -> {scrubbed:.4f}; overall: {audit['overall']['sentence']}")
    shutil.rmtree(folder)


main(*sys.argv[1:])
