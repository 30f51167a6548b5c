"""How quantities and names are written for people: by the command, in reports and in messages."""

from __future__ import annotations

TYPE_CHECKING = False  # as of typing, which the command does not load to say that it was interrupted
if TYPE_CHECKING:
    from collections.abc import Iterable


def bytes_text(count: float) -> str:
    """Binary units: "4 MiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def rate_text(bytes_per_second: float) -> str:
    """Decimal units: "4.52 GB/s"."""
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_second >= factor:
            return f"{bytes_per_second / factor:.3g} {unit}"
    return f"{bytes_per_second:.3g} B/s"


def seconds_text(seconds: float) -> str:
    """The unit that leaves few digits: "3.1 ms"."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def one_line(text: str) -> str:
    """The text with line ends and control characters spelled out, which a file's name may hold."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def guess(given: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" with the known name that is nearest, or nothing where none is near."""
    import difflib

    near = difflib.get_close_matches(given, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def need_characters(what: str, text: str, errors: str = "strict") -> None:
    """ValueError of text that cannot be kept as UTF-8. What is no UTF-8 reaches Python with half characters, each for
    one byte; `errors="surrogateescape"` takes these."""
    try:
        text.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        half = f"{what} {text!r} holds {text[error.start]!r}, which is not a character and cannot be kept as UTF-8"
        raise ValueError(f"{half}; text.encode('utf-8', 'replace').decode() puts ? there") from None
