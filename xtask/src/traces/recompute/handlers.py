"""Recomputes each run of a handler."""

from walk import UNKNOWN, Bounds, Mistake, at_least, response


def recompute(trace, job):
    """All columns of such a job that follow from the text, and its terms."""
    recorded = trace.recorded
    start, end = int(job["start_ns"]), int(job["end_ns"])
    number = job["id"] if job["id"].isdigit() else job["name"]
    handled = trace.handled.get((job["sort"], int(number), int(job["first_cpu"]), start))
    if handled is None:
        raise Mistake("no handler was entered there")
    if handled.end != end:
        raise Mistake("it is not left there")
    if not handled.clean:
        raise Mistake("another one in it is not left")
    window = end - start
    blocked = sum(handled.waits)
    executed = window - handled.displaced - blocked
    every = recorded.contention and recorded.handlers
    released = handled.due if job["sort"] in ("irq", "vector") else None
    released = released and tuple(min(due, start) for due in released)
    terms = {
        "w": Bounds(window, window),
        "j": Bounds(start - released[1], start - released[0]) if released else UNKNOWN,
        "b": Bounds(blocked, blocked) if recorded.contention else at_least(blocked),
        "i": Bounds(handled.displaced, handled.displaced) if recorded.handlers else at_least(handled.displaced),
        "c": Bounds(executed if every else 0, executed),
    }
    terms |= dict.fromkeys(("ss", "ss_entry", "ss_exit"), Bounds(0, 0))
    terms["r"] = response(terms["j"], terms["w"])
    columns = {
        "released_by": "timer" if released else "unseen",
        "released_min_ns": released and released[0],
        "released_max_ns": released and released[1],
        "woken_ns": None,
        "last_cpu": int(job["first_cpu"]),
        "preemptions": 0,
        "blockings": len(handled.waits),
        "longest_blocking_ns": max(handled.waits, default=None),
    }
    for term, bounds in terms.items():
        columns[f"{term}_min_ns"], columns[f"{term}_max_ns"] = bounds
    return columns, terms
