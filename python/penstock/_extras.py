"""Packages that Penstock does without until something needs them, and the extra of it that installs them. Compiled
modules of applications, which a build may leave out.

What must stay true: whatever part needs a package that is not there says so in one line, with the extra to install.
"""

from __future__ import annotations

from importlib.util import find_spec

from penstock._error import Error

# As in pyproject.toml.
EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "matplotlib": "report",
    "PIL": "report",
    "h5py": "formats",
    "hdf5plugin": "formats",
    "numcodecs": "formats",
    "pyarrow": "parquet",
    "pynvml": "power",
}


def install(package: str) -> str:
    """What to type for a package: its extra, where it has one."""
    extra = EXTRAS.get(package)
    return f"pip install 'penstock[{extra}]'" if extra else f"pip install {package}"


def absent(failure: BaseException, operation: str) -> Error | None:
    """The Error of an import that failed because a package is not there; None of another failure."""
    package = (getattr(failure, "name", None) or "").partition(".")[0]
    if not isinstance(failure, ModuleNotFoundError) or package not in EXTRAS:
        return None
    cause = f"the package {package} is not installed"
    return Error(code="unsupported", operation=operation, cause=cause, advice=install(package))


def left_out(module: str, failure: ImportError) -> ImportError:
    """What to raise where the package of an application could not be imported: what to do, if this installation has no
    such module."""
    if find_spec(module) is not None:
        return failure
    cause = f"{module.rpartition('.')[0]} is not in this installation: it was built to measure this machine only"
    return ImportError(f"{cause}; run make build in the source tree, or pip install . there", name=module)
