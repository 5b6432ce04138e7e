"""The one place where foreign text is made safe and where numbers become words.

Foreign text is everything that this program did not write itself: paths, model names, JSON strings, log bytes, pip
output. Textual passes control sequences through to the terminal, so nothing foreign reaches a widget or a terminal
before it went through :func:`clean` (one line) or :func:`clean_lines` (several).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

# Bidirectional controls reorder what a reader sees; zero-width and line separators hide or break it.
_INVISIBLE = frozenset(
    "\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064"
    "\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f\ufeff\ufff9\ufffa\ufffb"
)


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def clean(text: object, *, keep: str = "") -> str:
    """Return ``text`` as one line in which every control, bidi, surrogate and private character is a visible escape.

    ``keep`` names characters that stay as they are (for example a tab).
    """
    return "".join(
        char
        if char in keep or (char not in _INVISIBLE and unicodedata.category(char) not in ("Cc", "Cs", "Co", "Cn"))
        else _escape(char)
        for char in (text if isinstance(text, str) else str(text))
    )


def clean_lines(text: str) -> str:
    """Like :func:`clean`, but line feeds stay and tabs become four spaces."""
    return "\n".join(clean(line) for line in text.replace("\r\n", "\n").replace("\t", "    ").split("\n"))


def cell_width(text: str) -> int:
    """Terminal cells that ``text`` takes: wide characters two, combining marks none."""
    width = 0
    for char in text:
        if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def _take(text: str, cells: int, *, from_end: bool) -> str:
    taken: list[str] = []
    used = 0
    for char in reversed(text) if from_end else text:
        width = cell_width(char)
        if used + width > cells:
            break
        used += width
        taken.append(char)
    return "".join(reversed(taken)) if from_end else "".join(taken)


def elide_middle(text: str, cells: int, mark: str = "…") -> str:
    """Shorten ``text`` to ``cells`` terminal cells in the middle: the end of a path is what tells paths apart."""
    if cell_width(text) <= cells:
        return text
    room = cells - cell_width(mark)
    if room <= 0:
        return _take(text, cells, from_end=False)
    tail = (room * 2 + 2) // 3
    return _take(text, room - tail, from_end=False) + mark + _take(text, tail, from_end=True)


def elide_end(text: str, cells: int, mark: str = "…") -> str:
    """Shorten ``text`` to ``cells`` terminal cells at its end."""
    if cell_width(text) <= cells:
        return text
    return _take(text, max(0, cells - cell_width(mark)), from_end=False) + mark


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """``text`` filled with spaces to ``cells`` terminal cells, on the left when ``right`` aligns it."""
    fill = " " * max(0, cells - cell_width(text))
    return fill + text if right else text + fill


def human_bytes(size: int | None) -> str:
    """Bytes in decimal units, as checkpoint sizes are usually given; ``unknown`` for ``None``."""
    if size is None:
        return "unknown"
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        value /= 1000
        if value < 999.5 or unit == "PB":
            return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"
    raise AssertionError("unreachable")


def human_duration(seconds: float | None) -> str:
    """A span in its two largest useful units; ``unknown`` for ``None``."""
    if seconds is None:
        return "unknown"
    total = int(max(0, seconds))
    if total < 60:
        return f"{total} s"
    minutes, rest = divmod(total, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


_URL_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@]*@")
_URL_SECRET = re.compile(
    r"(?i)([?&;](?:access_?token|token|api_?key|key|password|passwd|secret|sig|signature)=)[^&\s\"']+"
)
_KNOWN_TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|AKIA[A-Z0-9]{16})\b"
)
_AUTH_HEADER = re.compile(r"(?i)\b((?:authorization|proxy-authorization)\s*[:=]\s*(?:bearer|basic|token)?\s*)\S+")
_SECRET_NAME = re.compile(
    r"(?i)(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIALS?|PRIVATE_KEY|API_KEY|ACCESS_KEY|AUTH)(?:$|_)|_KEY$"
)
# Values that may hold credentials although the name does not say so.
_SECRET_EXACT = frozenset(
    {
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_PROXY",
        "UV_INDEX_URL",
        "UV_EXTRA_INDEX_URL",
        "UV_INDEX",
    }
)


def redact(text: str) -> str:
    """Hide what looks like a credential: the whole user info of a URL, secret query values, known token shapes."""
    text = _URL_USERINFO.sub(r"\1***@", text)
    text = _URL_SECRET.sub(r"\1***", text)
    text = _AUTH_HEADER.sub(r"\1***", text)
    return _KNOWN_TOKEN.sub("***", text)


def has_credentials(text: str) -> bool:
    """True when :func:`redact` would change ``text``."""
    return redact(text) != text


def is_secret_name(name: str) -> bool:
    """True for environment variables whose value is never stored, shown or copied: set or unset is all that is said."""
    return name.upper() in _SECRET_EXACT or bool(_SECRET_NAME.search(name))


def redact_env(env: Mapping[str, str | None], names: Iterable[str]) -> dict[str, str | None]:
    """The named variables: value or ``None``; for a secret ``"set"`` or ``"unset"``."""
    shown: dict[str, str | None] = {}
    for name in names:
        value = env.get(name)
        if is_secret_name(name):
            shown[name] = "unset" if value is None else "set"
        else:
            shown[name] = None if value is None else redact(value)
    return shown
