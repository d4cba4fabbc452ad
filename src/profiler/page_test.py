#!/usr/bin/env python3
"""The data of a page of `berth report`, decoded as the page's script does, against the trace.

    page_test.py BERTH PROGRAM     PROGRAM writes trace.pftrace and events.json into its folder
    decoded(page)                  the head, with the events of each track
"""
import base64
import json
import re
import subprocess
import sys
import tempfile
import zlib


def decoded(page):
    text = re.search(r'<script type="application/octet-stream" id="data">([^<]*)</script>', page)
    blob = zlib.decompress(base64.b64decode(text.group(1), validate=True))
    length = int.from_bytes(blob[:4], "little")
    head, at = json.loads(blob[4:4 + length]), 4 + length

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = blob[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    for track in head["tracks"]:
        begins, begin = [], 0
        for _ in range(track["count"]):
            begin += number()
            begins.append(begin / 10 + track["origin_us"])
        durations = [number() / 10 for _ in begins]
        types = [head["types"][number()] for _ in begins]
        in_use = [number() if track["memory"] else None for _ in begins]
        track["events"] = list(zip(begins, durations, types, in_use))
    assert at == len(blob), (at, len(blob))
    return head


def check(page, events):
    """`events`: [track, name, kind, begin, end, bytes, line] in the order of the beginnings."""
    assert page.count("</script>") == 2 and "default-src 'none'" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    head = decoded(page)
    found = sorted((t["name"], kind[0], kind[1], round(begin, 1), round(took, 1), kind[5] if used is None else used, kind[3])
                   for t in head["tracks"] for begin, took, kind, used in t["events"])
    wanted = sorted((track, name, kind, begin, end - begin, size, line)
                    for track, name, kind, begin, end, size, line in events)
    assert len(found) == len(wanted), (len(found), len(wanted))
    for f, w in zip(found, wanted):
        assert f[:3] == w[:3] and f[5:] == w[5:], (f, w)
        assert abs(f[3] - w[3]) < 0.2 and abs(f[4] - w[4]) < 0.2, (f, w)
    assert head["analysis"]["events"] == len(events)
    return head


def main():
    berth, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--gtest_filter=PageFiles.*"], check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env={"BERTH_PAGE_FOLDER": folder})
        trace, page = f"{folder}/trace.pftrace", f"{folder}/page.html"
        subprocess.run([berth, "report", trace, "-o", page], check=True, timeout=60, stdout=subprocess.DEVNULL)
        with open(page, encoding="utf-8") as file, open(f"{folder}/events.json", encoding="utf-8") as events:
            head = check(file.read(), json.load(events))
        done = subprocess.run([berth, "report", "--compare", trace, trace, "--json"], check=True, timeout=60,
                              capture_output=True, text=True)
        document = json.loads(done.stdout)
        assert all(row["per_step_us"] == 0 and row["change"] == "" for row in document["compared"])
        del document["compared"]
        assert document == head["analysis"]
    assert subprocess.run([berth, "report"], capture_output=True).returncode == 2
    assert subprocess.run([berth, "report", __file__], capture_output=True).returncode == 1


if __name__ == "__main__":
    main()
