"""The site of the documentation: every page of docs/, and references of the Python, C, C++ and Fortran interfaces.

`make site` builds it into build/site. Sphinx reads the pages and the docstrings; Doxygen reads the headers and the
Fortran module. The pages read well as they lie in the tree: what only the site needs is here.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes

project = "Penstock"
author = "the developers of Penstock"
version = release = importlib.metadata.version("penstock")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.githubpages"]
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/*.md",
    "docs/**/*.md",
    "docs/site/*.rst",
    "examples/README.md",
]
root_doc = "README"
html_theme = "furo"
html_title = f"Penstock {version}"
html_copy_source = False

myst_heading_anchors = 4  # as the pages' links to headings expect
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_mock_imports = ["torch", "xarray", "zarr", "cupy"]  # modules that describe themselves without these
napoleon_google_docstring = True
# Pages of decisions and of formats are reached from their index, not from the sidebar. `bytes` is a field of several
# classes too.
suppress_warnings = ["toc.not_included", "ref.python"]

SIDEBAR = {
    "Guide": (
        *("docs/guide/install-and-link", "docs/python", "docs/guide/datasets", "docs/formats", "docs/guide/from-h5py"),
        "docs/simulation",
        *(f"docs/simulation/{one}" for one in ("stores", "ranks", "scale", "restarts", "snapshots")),
        *("docs/unmodified", "docs/formats/hdf5-driver", "docs/guide/training", "docs/gpu"),
        *("docs/cli", "docs/profile", "docs/guide/paths", "docs/guide/troubleshooting", "docs/guide/languages"),
        *("docs/guide/storage", "docs/untrusted-files", "docs/applications/hmatrix"),
    ),
    "Reference": ("docs/site/python", "docs/site/native"),
    "Measured": ("docs/bench", "docs/measured/README"),
    "Design": (
        *("docs/design/architecture", "docs/design/protocol", "docs/design/ondevice", "docs/decisions/README"),
        *("docs/GLOSSARY", "docs/STYLE"),
    ),
    "Project": ("docs/README", "examples/README", "CONTRIBUTING", "CHANGELOG", "SECURITY"),
}


def add_sidebar(_app: Any, name: str, source: list[str]) -> None:
    """The front page gets the contents of the sidebar, which its own text does not show."""
    if name == root_doc:
        trees = (
            f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(pages) for title, pages in SIDEBAR.items()
        )
        source[0] += "\n" + "\n```\n".join(trees) + "\n```\n"


def find_public(app: Any, _env: Any, node: Any, inside: Any) -> nodes.reference | None:
    """A type in a signature is named by the module that defines it; the reference describes it as users import it."""
    target = node.get("reftarget", "")
    public = f"penstock.{target.rpartition('.')[2]}"
    objects = app.env.get_domain("py").objects
    if public not in objects or node.get("refdomain") != "py":
        return None
    page = objects[public].docname
    return nodes.reference(
        "", "", inside, internal=True, refuri=f"{app.builder.get_relative_uri(node['refdoc'], page)}#{public}"
    )


def native(_name: str, _raw: str, text: str, _line: int, inliner: Any, *_rest: Any) -> tuple[list[Any], list[Any]]:
    """A link to a page of Doxygen: :native:`words <page.html>`."""
    words, page = re.fullmatch(r"(.*) <(.*)>", text, re.S).groups()  # type: ignore[union-attr]
    depth = inliner.document.settings.env.docname.count("/")
    return [nodes.reference("", words, refuri=f"{'../' * depth}native/{page}")], []


def describe_fields(_app: Any, what: str, name: str, object: Any, _options: Any, lines: list[str]) -> None:
    """A field of a class of options is described by the comment behind it."""
    if what != "attribute" or any(lines):
        return
    module, _, field = name.rpartition(".")
    package, _, owner = module.rpartition(".")
    try:
        source = inspect.getsource(getattr(importlib.import_module(package), owner))
    except (ImportError, AttributeError, OSError, TypeError):
        return
    found = re.search(rf"^    {field}:[^#\n]*# (.*)$", source, re.M)
    lines[:] = [found.group(1)] if found else []


def show_code(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """An indented block behind an empty line is code; Sphinx wants a mark before it."""
    for at in range(len(lines) - 1, 1, -1):
        before, gap, line = lines[at - 2 : at + 1]
        deeper = len(line) - len(line.lstrip()) >= len(before) - len(before.lstrip()) + 4
        if before.strip() and not gap.strip() and line.strip() and deeper:
            lines[at:at] = ["::", ""]


def finish(app: Any, error: Exception | None) -> None:
    if error is None:
        shutil.copy(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    importlib.import_module("penstock")  # an error that names the missing package, not one a class
    app.add_role("native", native)
    app.connect("source-read", add_sidebar)
    app.connect("autodoc-process-docstring", describe_fields)
    app.connect("autodoc-process-docstring", show_code, priority=400)  # before the sections of a docstring are read
    app.connect("missing-reference", find_public)
    app.connect("build-finished", finish)
