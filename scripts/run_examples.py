#!/usr/bin/env python3
"""Runs the examples of a page of docs/ and writes their output into it, so that no page shows what the program does not print.

usage: run_examples.py [--ogc build/bin/ogc] [--check] docs/PAGE.md...     --check fails when a page is not what would be written
needs: onnx, numpy

All examples of a page run one after the other in one empty folder:
- a block ```python runs as a program;
- a block ```console holds commands, each after "$ " with its output below. `ogc` and `ogc-opt` are those of the build, an exit code other than 0
  is shown as "exit code N". `| grep`, `| head` and the like are allowed.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def output_of(command: str, folder: str, environment: dict) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    return text + "\n" * bool(text) + (f"exit code {done.returncode}\n" if done.returncode else "")


def rewritten(text: str, programs: pathlib.Path) -> str:
    environment = os.environ | {"PATH": f"{programs}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder:

        def run(match: re.Match) -> str:
            language, content = match.groups()
            if language == "python":
                subprocess.run([sys.executable, "-c", content], cwd=folder, env=environment, check=True)
                return match.group(0)
            commands = [line for line in content.splitlines() if line.startswith("$ ")]
            shown = "".join(f"{command}\n{output_of(command[2:], folder, environment)}" for command in commands)
            return f"```console\n{shown}```"

        return BLOCK.sub(run, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ogc", default=str(ROOT / "build" / "bin" / "ogc"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    stale = 0
    for page in arguments.pages:
        before = page.read_text()
        after = rewritten(before, pathlib.Path(arguments.ogc).resolve().parent)
        if not arguments.check:
            page.write_text(after)
        elif after != before:
            stale += 1
            print(f"{page} is not current: run scripts/run_examples.py {page}", file=sys.stderr)
            lines = zip(before.splitlines(), after.splitlines())
            print(*next(((f"- {b}\n+ {a}",) for b, a in lines if a != b), ("lengths differ",)), file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
