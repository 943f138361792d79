"""Compares the figures of the JSON lines with those of the CSV, and sums with their parts."""

import json
import re

TERMS = ("R", "J", "SS", "W", "B", "I", "C", "SS_entry", "SS_exit")
# Members that are columns, too.
SAME = ("number", "id", "sort", "released_by", "woken_ns", "start_ns", "end_ns", "first_cpu", "last_cpu", "migrations", "preemptions")
SAME += ("suspended_ns", "throttled_ns", "throttles", "priority", "highest_priority", "nice")
SEGMENTS = {"J": "J", "B": "B", "I": "I"}
# The listed parts of a job.
MOST_SEGMENTS, MOST_CAUSES = 1024, 16


def text(value):
    return "" if value is None else str(value)


def precision(least, most):
    if least is None:
        return "unknown"
    return "at least" if most is None else "exact" if least == most else "bounded"


def total(term, doubtful):
    """The time of a term with the part that a missing switch may have ended earlier."""
    return (term["min_ns"] or 0) + doubtful if term["max_ns"] is None else term["max_ns"]


def check_job(row, job, causes, walk):
    """The errors in an object, and the number of correct figures. The causes are the threads that delayed and displaced it, with durations."""
    equal = 0
    doubtful = (walk.sums.maybe_blocking, walk.sums.maybe_interference) if walk else (0, 0)

    def same(what, found, wanted):
        nonlocal equal
        if found == wanted:
            equal += 1
        else:
            yield f"{what}: {found}, recomputed {wanted}"

    for member in SAME:
        yield from same(member, text(job[member]), row[member])
    released = job["released_ns"] or (None, None)
    for bound, found in zip(("released_min_ns", "released_max_ns"), released):
        yield from same(bound, text(found), row[bound])
    for term in TERMS:
        bounds, column = job["terms"][term], term.lower()
        least, most = bounds["min_ns"], bounds["max_ns"]
        yield from same(f"{term} min", text(least), row[f"{column}_min_ns"])
        yield from same(f"{term} max", text(most), row[f"{column}_max_ns"])
        yield from same(f"{term} precision", bounds["precision"], precision(least, most))
        if column in ("ss", "c"):
            yield from same(f"{term} likely", text(bounds.get("likely_ns")), row[f"{column}_likely_ns"])
    waits = [wait["end_ns"] - wait["start_ns"] for wait in job["blockings"]]
    if not row["flaw"]:
        blocked, displaced = total(job["terms"]["B"], doubtful[0]), total(job["terms"]["I"], doubtful[1])
        if not job["blockings_left_out"]:
            yield from same("sum of waits", sum(waits), blocked)
        # Causes are part of the time for which it was displaced, possibly not all of it.
        yield from same("sum of interference", sum(cause["ns"] for cause in job["interference_causes"]), displaced)
        for wait in job["blockings"]:
            if wait["slept"] and wait["shares"]:
                yield from same("shares of a wait", sum(share["ns"] for share in wait["shares"]), wait["end_ns"] - wait["start_ns"])
        if job["segments"] and len(job["segments"]) < MOST_SEGMENTS:
            of = lambda phase: sum(s["end_ns"] - s["start_ns"] for s in job["segments"] if s["phase"] == phase)
            yield from same("segments of B", of("B"), blocked)
            yield from same("segments of I", of("I"), displaced)
            busy = sum(s["end_ns"] - s["start_ns"] for s in job["segments"] if s["phase"] != "J")
            yield from same("segments", busy, job["end_ns"] - job["start_ns"])
    for member, took in zip(("jitter_causes", "interference_causes"), causes):
        if len(job[member]) < MOST_CAUSES:
            for thread, ns in took.items():
                named = [cause["ns"] for cause in job[member] if re.search(rf"(^|/){thread}$", cause["by"])]
                yield from same(f"{member} by {thread}", sum(named), ns)
    yield from same("blockings", str(len(waits) + job["blockings_left_out"]), row["blockings"])
    yield from same("longest blocking", text(max(waits, default=None)), row["longest_blocking_ns"])
    yield equal


def check(rows, path, causes_of, walk_of):
    """The errors in the JSON lines, and the number of correct figures."""
    wrong, equal = [], 0
    with open(path, encoding="utf-8", errors="replace") as lines:
        jobs = [json.loads(line) for line in lines]
    if len(jobs) != len(rows):
        wrong.append(f"{len(jobs)} objects, and {len(rows)} lines of CSV")
    for row, job in zip(rows, jobs):
        for result in check_job(row, job, causes_of.get(row["number"], ()), walk_of.get(row["number"])):
            if isinstance(result, int):
                equal += result
            else:
                wrong.append(f"{job['name']} at {job['start_ns']}: {result}")
    return wrong, equal
