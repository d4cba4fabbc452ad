#!/usr/bin/env python3
"""berth help, --version, ops NAME, completion and man: one text everywhere, and colours only where
they are wanted."""
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

BERTH, VERSION = sys.argv[1], sys.argv[2]


def run(*arguments, code=0, **more):
    done = subprocess.run([BERTH, *arguments], capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == code, (arguments, done)
    return done.stdout if code == 0 else done.stderr


def expect(text, *parts):
    for part in parts:
        assert part in text, f"expected {part!r} in:\n{text}"


assert run("--version") == f"berth {VERSION}\n"

# Commands, as the program lists them.
listed = run("--help").split("Subcommands:")[1]
COMMANDS = re.findall(r"^  ([a-z-]+) +\S", listed, re.M)
assert {"place", "plan", "ops", "help", "man", "completion"} <= set(COMMANDS), COMMANDS
OPTIONS = {}
for command in COMMANDS:
    text = run("help", command)
    assert text == run(command, "--help")
    OPTIONS[command] = set(re.findall(r"(--[a-z][a-z-]*)", text.split("Options:")[1]))
    assert OPTIONS[command], text
expect(run("help"), "Subcommands:")
expect(run("help", "plcae", code=2), "there is no command 'plcae'", "'place'")
expect(run("man", "nobody", code=2), "there is no command 'nobody'")

# One op, and the nearest where there is none.
one = run("ops", "MatMul")
expect(one, "MatMul(a", "gradient: rule")
assert one.count("gradient:") == 1, one
assert run("ops", "AddV2", "MatMul").count("gradient:") == 2
expect(run("ops", "MatMull", code=2), "there is no op 'MatMull'", "'MatMul'")
expect(run("ops", "matmul", code=2), "'MatMul'")

# Scripts name every command and option; bash completes with its own.
for shell in ("bash", "zsh", "fish"):
    script = run("completion", shell)
    for command, options in OPTIONS.items():
        expect(script, command)
        for option in options - {"--help"}:
            expect(script, option if shell != "fish" else f"-l {option[2:]}")
    with tempfile.NamedTemporaryFile("w", suffix=shell) as file:
        file.write(script)
        file.flush()
        program = shutil.which(shell)
        if program:
            subprocess.run([program, "-n", file.name], check=True)
run("completion", "tcsh", code=2)


def completed(*words):
    line = " ".join(f"'{w}'" for w in words)
    script = f'{run("completion", "bash")}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}\n'
    script += '_berth; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


assert completed("berth", "pl") == ["place", "plan"]
assert set(completed("berth", "place", "--s")) == {"--soft", "--simulate"}
assert completed("berth", "place", "--soft", "") == ["error", "warn", "silent"]
assert completed("berth", "place", "--soft", "w") == ["warn"]
assert completed("berth", "completion", "f") == ["fish"]
assert completed("berth", "help", "ver") == ["verify-plan"]

# Pages of man: of each command, with each option, in the language of man.
with tempfile.TemporaryDirectory() as folder:
    run("man", "--directory", folder)
    assert set(os.listdir(folder)) == {"berth.1"} | {f"berth-{c}.1" for c in COMMANDS}
    for command in COMMANDS:
        with open(f"{folder}/berth-{command}.1", encoding="utf-8") as file:
            page = file.read()
        assert page == run("man", command)
        for option in OPTIONS[command]:
            expect(page, option.replace("-", "\\-"))
        groff = shutil.which("groff")
        if groff:
            done = subprocess.run([groff, "-man", "-ww", "-Tascii", f"{folder}/berth-{command}.1"],
                                  capture_output=True, text=True, check=True)
            assert not done.stderr, done.stderr
            assert f"berth-{command}" in re.sub("\x1b\\[[0-9]*m", "", done.stdout), done.stdout
expect(run("man", "--directory", "/dev/null/no", code=1), "could not be written")


def on_terminal(*arguments, **environment):
    """What a user at a terminal sees."""
    ours, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen([BERTH, *arguments], stdout=theirs, stderr=theirs,
                               env={**env, "TERM": "xterm", **environment})
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        text += part
    process.wait()
    os.close(ours)
    return text.decode()


GRAPH = """berth-graph 1
op Make () -> (y)
kernel Make on CPU
node a = Make() -> float32[4]
return a:0
"""
with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    file.write(GRAPH)
    file.flush()
    place = ("place", file.name, "--devices", "CPUx1")
    expect(on_terminal(*place), "a: (Make): \x1b[32mCPU:0\x1b[0m")
    plain = on_terminal(*place, NO_COLOR="1").replace("\r\n", "\n")
    assert plain == run(*place), plain
    assert "\x1b" not in plain + on_terminal(*place, TERM="dumb")
    expect(on_terminal(*place, NO_COLOR=""), "\x1b[32m")
expect(on_terminal("no_such_command"), "\x1b[1;31mberth:\x1b[0m ")
