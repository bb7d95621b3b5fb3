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
    "</title><script>window.__pwned=1</script>",
    "<details open ontoggle=window.__pwned=1>",
    "\\u003cscript>window.__pwned=1</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a href=javascript:alert(1)>x</a>",
    "__proto__",
)
WRAPPINGS = (
    "{}",
    "\u202e{}",
    "{}\x00",
    "\u2066{}\u2069",
    "a\u200b{}",
    "\r\n{}",
    "白鹭{}",
    "👩‍👧{}",
    "\ud800{}",
    "\ufeff{}",
)
HOSTILE = tuple(
    wrapping.format(attack) if "{}" in wrapping else attack for attack in ATTACKS for wrapping in WRAPPINGS
)
