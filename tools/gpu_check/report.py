"""The report of a check: one document as JSON (docs/json.md) and as text."""
import datetime
import json

from gpu_check import machine

RESULTS = {"passed": 0, "failed": 1, "no GPU": 3, "not finished": 4}


def new_report(found):
    return {"berth_gpu_report": 1,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "result": "not finished", "reduced": [], "card": [], "plugins": [], "machine": found,
            "commit": "", "torch": "", "seconds": 0, "parts": [], "rows": []}


def judge(report, asked):
    """The result, from the parts: `asked` of them were to run."""
    states = [p["status"] for p in report["parts"]]
    if not report["card"]:
        return "no GPU"
    if "failed" in states:
        return "failed"
    if "not finished" in states or len(states) < asked:
        return "not finished"
    return "passed" if "passed" in states else "failed"


def counts(part):
    said = [f"{part[k]} {k}" for k in ("passed", "failed", "skipped") if part.get(k)]
    if part.get("not_run"):
        said.append(f"{part['not_run']} not run")
    if part.get("missed"):
        said.append(f"{part['missed']} below must")
    return ", ".join(said)


def text_of(report):
    lines = [f"GPU check of {report['date']}: {report['result']}", ""]
    if report["reduced"]:
        lines.append("reduced   " + ", ".join(report["reduced"]))
    for card in report["card"]:
        lines.append(f"card      {card['name'].rsplit('/', 1)[-1]}: {card['description']}")
    for plugin in report["plugins"]:
        lines.append(f"plug-in   {plugin['name'] or plugin['path']}: " +
                     (plugin["why"] or f"{plugin['devices']} devices"))
    m = report["machine"]
    lines += machine.versions(m)
    lines += [f"machine   {m['processor']}, {m['cores']} cores, {m['system']}, {m['kernel']}",
              f"commit    {report['commit'] or 'unknown'}",
              f"PyTorch   {report['torch']}", "",
              f"{'part':20} {'status':13} {'seconds':>8}  tests"]
    for part in report["parts"]:
        lines.append(f"{part['name']:20} {part['status']:13} {part.get('seconds', 0):8.1f}  "
                     f"{counts(part)}")
        for note in part.get("notes", []):
            lines.append(f"    {note}")
        for reason, count in sorted(part.get("skips", {}).items(), key=lambda s: -s[1])[:12]:
            lines.append(f"    skipped {count}: {reason}")
        for failure in part.get("failures", [])[:40]:
            where = " (passes alone)" if failure["name"] in part.get("passes_alone", []) else ""
            lines.append(f"    FAILED {failure['name']}{where}")
            lines += ["        " + l for l in failure["text"].splitlines()[:4]]
        if len(part.get("failures", [])) > 40:
            lines.append(f"    and {len(part['failures']) - 40} more (report.json)")
    if report["rows"]:
        lines += ["", f"{'row':34} {'value':>10} {'must':>6} {'aim':>6}  status"]
        for row in report["rows"]:
            value = "-" if row["value"] is None else f"{row['value']:.4g}"
            reason = f" ({row['reason']})" if row["reason"] else ""
            lines.append(f"{row['row']:34} {value:>10} {row['must']:>6g} {row['aim']:>6g}  "
                         f"{row['status']}{reason}")
    lines += ["", f"{report['seconds']:.0f} s in all; result: {report['result']}"]
    return "\n".join(lines) + "\n"


def write(report, folder):
    """Both files, whole at any time."""
    for name, text in (("report.json", json.dumps(report, indent=1) + "\n"),
                       ("report.txt", text_of(report))):
        new = folder / (name + ".new")
        new.write_text(text, encoding="utf-8")
        new.replace(folder / name)
