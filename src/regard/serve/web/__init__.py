"""The page, as files the server holds in memory: no path that a client sends ever meets a disk."""

KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}

FILES: dict[str, tuple[str, bytes]] = {}
