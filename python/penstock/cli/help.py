"""Help texts as users read them: what a value is instead of its type in Python, and whole sentences.

typer shows the type of every option (<str>, <bool>) and keeps the line ends of docstrings. What must stay true: nothing
here changes what a command takes.
"""

from __future__ import annotations

from typing import Any

# What an option's value is, by the name of the option.
_VALUES = {
    "SIZE": ("bytes", "chunk_bytes", "file_bytes", "offset", "cache", "size", "start", "io", "alignment"),
    "DEVICE": ("to", "source", "device", "assemble_on"),
    "FILE": ("out", "results", "store", "matrix", "checkpoint", "picture", "profile", "file"),
    "FOLDER": ("directory", "remote"),
    "N": (
        *("workers", "depth", "seed", "seconds", "repeats", "triangles", "subdivide", "batches", "max_iterations"),
        *("restart", "pin", "checkpoint_sweeps", "width", "threads", "batch", "node", "memory", "io_type", "transfer"),
        *("mixed", "opened", "fail_below", "tol", "eps"),
    ),
    "NAME": ("path",),
}
_VALUE_OF = {name: word for word, names in _VALUES.items() for name in names}


def readable(command: Any) -> Any:
    """The command itself, and its subcommands, with texts for people."""
    command.help = _joined(command.help)
    for parameter in command.params:
        _name(parameter)
    given = command.get_help_option

    def help_option(context: Any) -> Any:
        option = given(context)
        if option is not None:
            _name(option)
        return option

    command.get_help_option = help_option
    for one in getattr(command, "commands", {}).values():
        readable(one)
    return command


def _name(parameter: Any) -> None:
    if parameter.param_type_name == "argument":
        parameter.metavar = parameter.metavar or parameter.name.upper()
        parameter.display_type_rich = lambda ctx: None
    elif parameter.metavar is None:
        flag = getattr(parameter, "is_flag", False)
        parameter.metavar = "" if flag else _VALUE_OF.get(parameter.name, "TEXT" if parameter.name else "")


def _joined(text: str | None) -> str | None:
    """Paragraphs of one line each: the terminal's width breaks them, not the source's."""
    if text is None:
        return None
    paragraphs = "\n".join(line.strip() for line in text.strip().splitlines()).split("\n\n")
    return "\n\n".join(one.replace("\n", " ") for one in paragraphs)
