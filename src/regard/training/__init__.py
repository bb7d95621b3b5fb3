"""The loop (a generator of events) and what it stands on. It sees tasks only through their protocol."""
