"""A small model and dataset hub on the loopback address, for filling a cache without the network.

It speaks the part of the Hub's HTTP interface that huggingface_hub 1.x and datasets 5.x use to read a repository:
repository information, file trees, path information and file contents. Repositories are folders:
``ROOT/datasets/OWNER/NAME/…`` and ``ROOT/models/OWNER/NAME/…``.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_ZERO_OID = "0" * 40
_LONG_AGO = "2025-01-01T00:00:00.000Z"
_NAME = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_INFO = re.compile(rf"/api/(datasets|models)/({_NAME})(?:/revision/[^/]+)?")
_TREE = re.compile(rf"/api/(datasets|models)/({_NAME})/tree/[^/]+(?:/(.*))?")
_PATHS = re.compile(rf"/api/(datasets|models)/({_NAME})/paths-info/[^/]+")
_RESOLVE = re.compile(rf"/(datasets/)?({_NAME})/resolve/[^/]+/(.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Repository:
    """One folder, seen as a repository at a single commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def commit(self) -> str:
        """A commit id made of the names and contents."""
        total = hashlib.sha1(usedforsecurity=False)
        for path in self.files():
            total.update(f"{path.relative_to(self.folder)}\0{_oid(path)}\n".encode())
        return total.hexdigest()

    def files(self) -> list[Path]:
        return [path for path in sorted(self.folder.rglob("*")) if path.is_file()]

    def inside(self, relative: str) -> Path | None:
        """The path that ``relative`` names, or None when it leads out of the repository."""
        path = (self.folder / relative).resolve()
        return path if path.is_relative_to(self.folder.resolve()) else None

    def entry(self, path: Path) -> dict[str, Any]:
        name = path.relative_to(self.folder).as_posix()
        if path.is_dir():
            return {"type": "directory", "path": name, "oid": _ZERO_OID, "size": 0}
        return {"type": "file", "path": name, "oid": _oid(path), "size": path.stat().st_size}


def _oid(path: Path) -> str:
    return hashlib.sha1(path.read_bytes(), usedforsecurity=False).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def log_message(self, format: str, *args: object) -> None:
        """Requests are nobody's business here."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        if match := _INFO.fullmatch(path):
            self._info(match[1], match[2])
        elif match := _TREE.fullmatch(path):
            recursive = parse_qs(url.query).get("recursive", ["false"])[0].lower() in ("1", "true")
            self._tree(match[1], match[2], match[3] or "", recursive)
        elif match := _RESOLVE.fullmatch(path):
            self._content("datasets" if match[1] else "models", match[2], match[3])
        else:
            self._missing("RepoNotFound", f"no such page: {path}")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match = _PATHS.fullmatch(unquote(urlsplit(self.path).path))
        repository = self._repository(match[1], match[2]) if match else None
        if repository is None:
            self._missing("RepoNotFound", "no such repository")
            return
        if "json" in self.headers.get("Content-Type", ""):
            wanted = json.loads(body or b"{}").get("paths", [])
        else:
            wanted = parse_qs(body.decode()).get("paths", [])
        paths = [repository.inside(name) for name in ([wanted] if isinstance(wanted, str) else wanted)]
        self._json([repository.entry(path) for path in paths if path is not None and path.exists()])

    def _repository(self, kind: str, name: str) -> Repository | None:
        folder = self.root / kind / name
        return Repository(folder) if folder.is_dir() else None

    def _info(self, kind: str, name: str) -> None:
        repository = self._repository(kind, name)
        if repository is None:
            self._missing("RepoNotFound", f"no such repository: {name}")
            return
        self._json(
            {
                "_id": _ZERO_OID[:24],
                "id": name,
                "author": name.split("/")[0],
                "sha": repository.commit,
                "private": False,
                "gated": False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "createdAt": _LONG_AGO,
                "lastModified": _LONG_AGO,
                "siblings": [
                    {"rfilename": path.relative_to(repository.folder).as_posix(), "size": path.stat().st_size}
                    for path in repository.files()
                ],
            }
        )

    def _tree(self, kind: str, name: str, below: str, recursive: bool) -> None:
        repository = self._repository(kind, name)
        base = repository.inside(below) if repository else None
        if repository is None:
            self._missing("RepoNotFound", f"no such repository: {name}")
        elif base is None or not base.is_dir():
            self._missing("EntryNotFound", f"no such folder: {below}")
        else:
            found = sorted(base.rglob("*") if recursive else base.iterdir())
            self._json([repository.entry(path) for path in found])

    def _content(self, kind: str, name: str, file: str) -> None:
        repository = self._repository(kind, name)
        if repository is None:
            self._missing("RepoNotFound", f"no such repository: {name}")
            return
        path = repository.inside(file)
        if path is None or not path.is_file():
            self._missing("EntryNotFound", f"no such file: {file}", {"X-Repo-Commit": repository.commit})
            return
        body = path.read_bytes()
        headers = {"ETag": f'"{_oid(path)}"', "X-Repo-Commit": repository.commit, "Accept-Ranges": "bytes"}
        status = 200
        if match := _RANGE.fullmatch(self.headers.get("Range", "")):
            first = int(match[1])
            last = min(int(match[2]) if match[2] else len(body) - 1, len(body) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
            body, status = body[first : last + 1], 206
        self._send(status, body, "application/octet-stream", headers)

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), "application/json", {})

    def _missing(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        extra = {
            "X-Error-Code": code,
            "X-Error-Message": message.encode("ascii", "replace").decode(),
            **(headers or {}),
        }
        self._send(404, json.dumps({"error": message}).encode(), "application/json", extra)

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value.replace("\r", " ").replace("\n", " "))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Hub:
    """The hub as a context manager: it serves ``root`` from a thread on a free loopback port while it is open."""

    def __init__(self, root: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"root": root}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="demo-hub", daemon=True)

    @property
    def url(self) -> str:
        """What HF_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Hub:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
