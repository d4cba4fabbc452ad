"""Reports, plans and timelines as HTML, for notebooks."""
import html


def _escape(value):
    return html.escape(str(value))


def text(value):
    return f"<pre>{_escape(value)}</pre>"


def table(head, rows, title=""):
    top = "".join(f"<th>{_escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{_escape(v)}</td>" for v in row) + "</tr>" for row in rows)
    caption = f"<caption>{_escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _short(device):
    return str(device).rsplit("device:", 1)[-1]


def _us(value):
    return "" if value is None or value < 0 else f"{value:.1f}"


def _line(site):
    return "" if not site else f"{site['file'].rsplit('/', 1)[-1]}:{site['line']}"


def report(data):
    """placement().json() as tables: devices, transfers, fallbacks, ops."""
    parts = [f"<b>{_escape(data['name'])}</b>: {data['steps']} runs, measured step "
             f"{_us(data['measured_step_us']) or '?'} us"]
    parts += [f"<p>{_escape(v)}</p>" for v in data.get("verdicts", ())]
    if data.get("plan"):
        parts.append(f"<p>{_escape(data['plan'])}</p>")
    parts.append(table(["device", "ops", "busy us", "peak bytes"],
                       [[_short(d["device"]), d["ops"], _us(d["measured_busy_us"]), f"{d['peak_bytes']:,}"]
                        for d in data["devices"]], "devices"))
    if data["transfers"]:
        parts.append(table(["value", "from", "to", "bytes", "per step", "cause"],
                           [[t["value"], _short(t["from"]), _short(t["to"]), f"{t['bytes']:,}",
                             f"{t['runs_per_step']:g}", t["cause"]] for t in data["transfers"]], "transfers"))
    if data["fallbacks"]:
        parts.append(table(["op", "asked for", "ran on", "reason"],
                           [[f["op"], f["requested"], _short(f["device"]), f["reason"]]
                            for f in data["fallbacks"]], "fallbacks"))
    rows = [[o["op"], o["type"], _short(o["device"]), _us(o["measured_us"]), _line(o["site"])]
            for o in data["ops"]]
    parts.append(f"<details><summary>{len(rows)} ops</summary>"
                 + table(["op", "type", "device", "us", "line"], rows) + "</details>")
    return "<div>" + "".join(parts) + "</div>"


def timeline(trace, most=400):
    """A row for each track with a bar for each event, the longest `most` of them.

    `trace` is what Timeline.json() gives. Simulated devices have a clock, and so a scale, of their own.
    """
    tracks = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    if not events:
        return "<div>nothing was recorded</div>"

    def clock(e):
        return tracks[e["pid"]].endswith("(simulated time)")

    whole = {c: max([e["ts"] + e["dur"] for e in events if clock(e) == c] + [1e-9]) for c in (False, True)}
    shown = sorted(events, key=lambda e: -e["dur"])[:most]
    height, left, width = 22, 200, 800
    out = [f'<svg width="{left + width}" height="{height * len(tracks) + 20}" font-size="11">']
    for row, (track, label) in enumerate(tracks.items()):
        y = row * height
        out.append(f'<text x="0" y="{y + 15}">{_escape(_short(label))}</text>')
        for e in (e for e in shown if e["pid"] == track):
            scale = width / whole[clock(e)]
            hue = sum(map(ord, e["name"])) * 37 % 360
            out.append(f'<rect x="{left + e["ts"] * scale:.1f}" y="{y + 3}" '
                       f'width="{max(e["dur"] * scale, 0.5):.1f}" height="{height - 6}" '
                       f'fill="hsl({hue},60%,65%)"><title>{_escape(e["name"])} {e["dur"]:.1f} us '
                       f'{_escape(e["args"].get("line", ""))}</title></rect>')
    spans = [f"{whole[c] / 1e3:.2f} ms{mark}" for c, mark in ((False, ""), (True, " (simulated time)"))
             if any(clock(e) == c for e in events)]
    out.append(f'<text x="{left}" y="{height * len(tracks) + 14}">{" and ".join(spans)}, '
               f'{len(events)} events</text></svg>')
    return "".join(out)
