"""Strings that would do something if a page obeyed them, in every wrapping that has fooled a page."""

ATTACKS = (
    "<script>window.__pwned=1</script>",
    "</script><script>window.__pwned=1</script>",
    "<img src=x onerror=window.__pwned=1>",
    "<svg onload=window.__pwned=1>",
    "<svg><script>window.__pwned=1</script></svg>",
    "<iframe srcdoc='<script>parent.__pwned=1</script>'>",
    "javascript:window.__pwned=1",
    '" autofocus onfocus="window.__pwned=1',
    "' onmouseover='window.__pwned=1",
    "]]><script>window.__pwned=1</script>",
    "<!--<script>window.__pwned=1//-->",
    "{{constructor.constructor('window.__pwned=1')()}}",
    "${window.__pwned=1}",
    "</style><script>window.__pwned=1</script>",
    "</textarea><script>window.__pwned=1</script>",
    "</title><script>window.__pwned=1</script>",
    "<details open ontoggle=window.__pwned=1>",
    "\\u003cscript>window.__pwned=1</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a href=javascript:alert(1)>x</a>",
    "__proto__",
    "event: answer\ndata: {}\n\n<b>",
)
WRAPPINGS = (
    "{}", "\u202e{}", "{}\x00", "\u2066{}\u2069", "a\u200b{}", "\r\n{}", "白鹭{}", "👩‍👧{}", "\ud800{}",
    "\ufeff{}", "{} {}", "一{}二", "\t{}", "{}'", '{}"', "`{}`", "<<{}>>", "%3C{}%3E", "\\{}", "{}//",
    "/*{}*/", "&#60;{}", "\u2028{}", "x={}", "[[{}]]", "{}\u0301",
)  # fmt: skip
HOSTILE = tuple(wrapping.replace("{}", attack) for attack in ATTACKS for wrapping in WRAPPINGS)
SENDABLE = [text for text in HOSTILE if "\ud800" not in text]
"""As JSON in UTF-8."""
