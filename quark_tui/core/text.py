"""The one place where foreign text is made safe and where numbers become words.

Foreign text is everything that this program did not write itself: paths, model names, JSON strings, log bytes, pip
output. Textual passes control sequences through to the terminal, so nothing foreign reaches a widget or a terminal
before it went through :func:`clean` (one line) or :func:`clean_lines` (several).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

# Not shown as anything of their own. Unassigned, control, private, surrogate, format (soft hyphen, bidi controls,
# joiners, tags) and separator characters are escaped by category; these are letters, marks and symbols by category.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f")
# Variation selectors: invisible, and terminals disagree about how wide they make the character before them.
_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS = frozenset({"Mn", "Me"})
#: Marks in a row that stay on one base character; real scripts need fewer, more paint over the lines around.
MAX_MARKS = 8


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except Exception as error:  # foreign objects: an integer of many digits, an exception that holds one, deep nesting
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def clean(text: object, *, keep: str = "") -> str:
    """Return ``text`` as one line in which everything that is invisible, or acts on what is around it, is an escape.

    These are control, format (bidi, joiners, soft hyphen, tags), separator (spaces but the ordinary one among them),
    surrogate, private and unassigned characters, variation selectors and blank letters. Combining marks stay unless
    they have no base character, or are more than ``MAX_MARKS`` in a row. The result is printable, and cleaned again it
    is the same. ``keep`` names characters that stay as they are (for example a tab). Raises nothing for any object.
    """
    said = _as_text(text)
    if said.isascii() and said.isprintable():
        return said
    result: list[str] = []
    marks = MAX_MARKS  # at the start of the line there is no base character
    for char in said:
        category = unicodedata.category(char)
        mark = category in _MARKS
        marks = marks + 1 if mark else 0
        if char in keep or not (
            marks > MAX_MARKS
            or category in _ESCAPED_CATEGORIES
            or (category == "Zs" and char != " ")
            or char in _BLANK
            or (mark and any(ord(char) in selectors for selectors in _SELECTORS))
        ):
            result.append(char)
        else:
            result.append(_escape(char))
    return "".join(result)


def clean_lines(text: str) -> str:
    """Like :func:`clean`, but line feeds stay and tabs become four spaces."""
    return "\n".join(clean(line) for line in text.replace("\r\n", "\n").replace("\t", "    ").split("\n"))


def cell_width(text: str) -> int:
    """Terminal cells that ``text`` takes: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    width = 0
    for char in text:
        if not _no_width(char):
            width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def _no_width(char: str) -> bool:
    return bool(unicodedata.combining(char)) or unicodedata.category(char) in ("Mn", "Me", "Cf")


def _take(text: str, cells: int, *, from_end: bool) -> str:
    taken: list[str] = []
    used = 0
    for char in reversed(text) if from_end else text:
        width = cell_width(char)
        if used + width > cells:
            break
        used += width
        taken.append(char)
    if from_end:
        while taken and _no_width(taken[-1]):  # its base character did not fit: it would join what stands before
            taken.pop()
        taken.reverse()
    return "".join(taken) if used else ""


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
    room = cells - cell_width(mark)
    if room <= 0:
        return _take(text, cells, from_end=False)
    return _take(text, room, from_end=False) + mark


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """``text`` filled with spaces to ``cells`` terminal cells, on the left when ``right`` aligns it."""
    fill = " " * max(0, cells - cell_width(text))
    return fill + text if right else text + fill


def human_bytes(size: int | None) -> str:
    """Bytes in decimal units, as checkpoint sizes are usually given; ``unknown`` for ``None``."""
    if size is None:
        return "unknown"
    if size < 1000:
        return f"{size} B" if size >= 0 else f"-{human_bytes(-size)}"
    if size >= 10**21:
        return "more than 1000 EB"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB", "PB", "EB"):
        value /= 1000
        if value < 999.5 or unit == "EB":
            return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"
    raise AssertionError("unreachable")


_CENTURY = 100 * 365 * 24 * 3600


def human_duration(seconds: float | None) -> str:
    """A span of seconds in its two largest useful units; ``unknown`` for ``None`` and NaN, nothing below zero."""
    if seconds is None or seconds != seconds:
        return "unknown"
    if seconds > _CENTURY:
        return "more than 100 years"
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


class _Pattern:
    """A regular expression that is compiled when it is first needed: start-up pays for none of these."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._source)
        return self._compiled


# Every repetition below that could meet again at its own start is bounded, so the time stays linear in the text.
# A user name alone is no secret where the protocol is SSH, and what precedes a digest is no user.
_URL_USERINFO = _Pattern(r"(?i)((?<=[a-z0-9])(?!(?<=ssh)://[^/\s?#:@]*@)://)[^/\s?#]*@(?!sha\d{1,3}:)")
# A password with a raw slash: what stands behind the colon cannot be a port.
_URL_RAW_PASSWORD = _Pattern(
    r"(?i)((?<=[a-z0-9])://)(?!\*\*\*@)[^/\s?#:@\[]{1,256}:(?!\d*(?:[/?#]|$|\s))[^\s@?#]{0,512}@"
)
_ENCODED_PART = r"(?:(?!%2f|%3f|%23|%40)[^\s/?#&@]){1,1024}(?:@|%40)"
_URL_ENCODED = _Pattern(rf"(?i)((?<=[a-z0-9])%3a%2f%2f){_ENCODED_PART}(?:{_ENCODED_PART})?")
_OPTION_PREFIX = (
    r"(?:access|api|auth|bearer|ci|client|deploy|gh|github|gitlab|hf|hub|huggingface|id|job|jwt|login|oauth|personal|private"
    r"|read|refresh|registry|secret|security|session|use|user|write|aws|amz|x)"
)
_SECRET_OPTION = (
    rf"(?:{_OPTION_PREFIX}[-_]?){{0,4}}(?:token|api[-_]?key|password|passwd|passphrase|secret(?:[-_](?:access[-_])?key)?"
    r"|access[-_]key(?:[-_]id)?|credentials?)"
)
_URL_SECRET = _Pattern(
    rf"(?i)([?&;#](?:{_SECRET_OPTION}|(?:x[-_](?:amz|goog)[-_])?(?:signature|credential)|(?:aws)?accesskeyid|sig|key|auth"
    r"|jwt|pwd)=)[^&\s\"'#]+"
)
# A word of plain text behind an option's name is no value.
_PROSE = r"(?!(?:a|an|and|argument|as|for|from|if|in|instead|is|of|on|option|or|the|to|was|with)\b)"
_OPTION_SECRET = _Pattern(
    rf"(?i)((?<![\w-])--?{_SECRET_OPTION}(?:=|[ \t]{{1,20}}{_PROSE}(?!-)))(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"])+"
)
# NAME=value in an environment's way, "name": "value" in a document's, name='value' in Python's.
_ASSIGNED = _Pattern(
    r"((?<![A-Za-z0-9_])[A-Z0-9_]{0,60}(?:(?:HF|API|AUTH|ACCESS|HUB|GITHUB|GITLAB|GH|SESSION|PRIVATE|REFRESH|CI|JOB)_?TOKEN"
    r"|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY(?:_ID)?)=)(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\",;]+)"
)
_QUOTED = _Pattern(
    r"(?i)((?<![a-z0-9_])(?:(?:hf|hub|api|auth|access|bearer|private|refresh|session)[-_]token|(?:x[-_])?api[-_]?key"
    r"|password|passwd|passphrase|client[-_]secret|secret[-_](?:access[-_])?key)[\"']?[ \t]{0,20}[:=][ \t]{0,20}[\"'])"
    r"[^\"'\n]+"
)
_WORD_START = r"(?<![A-Za-z0-9])"
_KNOWN_TOKEN = _Pattern(
    _WORD_START
    + r"(?:hf_(?=[a-zA-Z]{0,40}[A-Z0-9])[A-Za-z0-9]{16,}|hf_oauth_[A-Za-z0-9_.-]{16,}|api_org_[A-Za-z0-9]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_-]{16,}"
    r"|sk-(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|xox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{16,}|ya29\.[A-Za-z0-9_-]{16,}"
    r"|eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,8192}(?:\.[A-Za-z0-9_-]{0,8192}){1,3})"
)
_AUTH_HEADER = _Pattern(
    r"(?i)((?<![a-z0-9])(?:proxy-)?authorization[\"']?[ \t]{0,20}[:=][ \t]{0,20}[\"']?"
    r"(?:(?:bearer|basic|token|digest|apikey)[ \t]{1,20})?)[^\s\"',]+"
)
_BEARER = _Pattern(r"(?i)((?<![a-z0-9])bearer[ \t]{1,20})(?=[a-z._~+/=-]{0,60}\d)[a-z0-9._~+/=-]{16,}")
_API_KEY_HEADER = _Pattern(
    r"(?i)((?<![a-z0-9-])(?:x-api-key|x-auth-token|private-token|job-token|api-key)[ \t]{0,20}:[ \t]{0,20})[^\s\"',]+"
)
_SECRET_NAME = _Pattern(
    r"(?i)PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?(?:$|_)|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY"
    r"|TOKEN(?:$|_)|(?:^|_)(?:AUTH|BEARER|JWT|PAT|COOKIES?|(?:SSH)?PASS)(?:$|_)|_(?:KEY|PWD)$"
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
        "UV_DEFAULT_INDEX",
        "UV_FIND_LINKS",
        "UV_INDEX",
    }
)
_KEEPING_NAME = (
    _URL_USERINFO,
    _URL_RAW_PASSWORD,
    _URL_ENCODED,
    _URL_SECRET,
    _OPTION_SECRET,
    _ASSIGNED,
    _QUOTED,
    _AUTH_HEADER,
    _BEARER,
    _API_KEY_HEADER,
)


#: Casefolded; no pattern matches a text without any of these. Most lines of a log have none and cost little then.
_HINTS = (
    "://", "%3a%2f", "token", "passw", "passphrase", "secret", "credential", "key", "auth", "bearer", "jwt", "pwd",
    "sig", "hf_", "api_org_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-",
    "glcbt-",
    "glptt-", "glft-", "glsoat-", "glagent-", "sk-", "akia", "asia", "xox", "aiza", "npm_", "pypi-", "ya29.", "eyj",
)  # fmt: skip


def redact(text: str) -> str:
    """Hide what looks like a credential: user info of a URL, secret query values, options, variables and headers, and
    known token shapes.

    Paths, e-mail addresses, hashes and ``user@host:path`` stay as they are. Redacting twice is the same as once.
    """
    folded = text.casefold()
    if not any(word in folded for word in _HINTS):
        return text
    text = _KNOWN_TOKEN.compiled.sub("***", text)
    for pattern in _KEEPING_NAME:
        kept = r"\1***@" if pattern in (_URL_USERINFO, _URL_RAW_PASSWORD, _URL_ENCODED) else r"\1***"
        text = pattern.compiled.sub(kept, text)
    return text


def has_credentials(text: str) -> bool:
    """True when :func:`redact` would change ``text``."""
    return redact(text) != text


def is_secret_name(name: str) -> bool:
    """True for environment variables whose value is never stored, shown or copied: set or unset is all that is said."""
    return name.upper() in _SECRET_EXACT or bool(_SECRET_NAME.compiled.search(name))


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
