#!/usr/bin/env python3
"""Places graphs of tools/make_graph: generated_test.py BERTH MAKE_GRAPH."""
import json
import subprocess
import sys


def make(*arguments):
    return subprocess.run([sys.executable, sys.argv[2], *arguments], stdout=subprocess.PIPE,
                          check=True).stdout


def place(text, *arguments):
    done = subprocess.run([sys.argv[1], "place", "-", "--json", *arguments], input=text,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)



def check(*arguments, least=0):
    text = make(*arguments)
    if text != make(*arguments):
        sys.exit(f"make_graph {arguments}: two runs differ")
    for policy in ("default", "tensorflow"):
        nodes = place(text, "--policy", policy)["nodes"]
        if len(nodes) < least:
            sys.exit(f"make_graph {arguments}: {len(nodes)} nodes, expected {least}")
        for node in nodes:
            asked = node.get("requested")
            if asked and not node["device"].endswith("/device:" + asked[1:]):
                sys.exit(f"{node} is not where it was asked to be")
    # Gradients follow their forward ops by our own rules.
    on = {node["name"]: node["device"] for node in place(text)["nodes"]}
    for line in text.decode().splitlines():
        words = line.split()
        if line.startswith("node ") and "follows" in words:
            leader = words[words.index("follows") + 1]
            if on[words[1]] != on[leader]:
                sys.exit(f"{words[1]} is on {on[words[1]]}, {leader} on {on[leader]}")


check("--layers", "1", "--width", "1", "--devices", "0")
check("--layers", "5", "--width", "4", "--branching", "4", "--training", "--seed", "7")
check("--layers", "6", "--training", "--costs", "--requests", "1", "--groups", "1",
      "--devices", "3")
check("--nodes", "10000", "--width", "8", "--training", "--devices", "4", least=10000)
