#!/usr/bin/env python3
"""The project's law as a test: layers, sizes, names and leftovers that no compiler minds.

    tools/tidy.py [--root DIR] [--allow FILE]

Prints one line for each violation and exits 1 when there is any. Exceptions are lines of tools/tidy_allow.txt, each
with its reason; an exception that nothing needs any more is a violation too, so the list only shrinks. Standard library
only; the rules are in law/, and each has a planted violation in tidy_test.py.
"""

import argparse
import fnmatch
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from law import files, layers, tree
from law.source import Finding, load


def apply_allowed(findings: list[Finding], text: str, name: str) -> list[Finding]:
    """Removes excepted findings; adds one for each exception that is malformed or that nothing needed."""
    left = findings
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        rule, path, reason = ([part.strip() for part in line.split("|", 2)] + ["", ""])[:3]
        kept = [f for f in left if f.rule != rule or not fnmatch.fnmatchcase(f.path, path)]
        if not reason:
            kept.append(Finding("allow", name, number, "write: rule | path or pattern | reason"))
        elif len(kept) == len(left):
            kept.append(Finding("allow", name, number, f"nothing needs it any more: {line}"))
        left = kept
    return left


def rules(prefix: str) -> list[Callable[..., Iterator[Finding]]]:
    """The functions of the modules of law/ whose names begin so."""
    return [rule for module in (files, layers, tree) for name, rule in vars(module).items() if name.startswith(prefix)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parent
    parser.add_argument("--root", type=Path, default=here.parent)
    parser.add_argument("--allow", type=Path, default=here / "tidy_allow.txt")
    options = parser.parse_args()
    sources, findings = load(options.root)
    for rule in rules("rule_"):
        for source in sources.values():
            findings.extend(rule(source, sources))
    for rule in rules("tree_"):
        findings.extend(rule(sources))
    allowed = options.allow.read_text(encoding="utf-8") if options.allow.exists() else ""
    findings = apply_allowed(findings, allowed, options.allow.name)
    for finding in sorted(findings, key=lambda f: (f.path, f.line, f.rule)):
        print(finding)
    print(f"tidy: {len(sources)} files, {len(findings)} violations", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
