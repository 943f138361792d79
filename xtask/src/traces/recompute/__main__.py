"""Recomputes the results of `punctual trace report` for each job and each task from the text of `trace-cmd report -t -N` alone.

usage: recompute JOBS.csv JOBS.json TABLES.txt PAGE.html REPORT.txt OPTIONS.txt [-v] [COMMAND..]

OPTIONS is the text of `trace-cmd dump --options`; with `-N`, events are printed in the kernel's format. The script uses only the
definitions in docs/book/src/internals/tracing.md, no code of the program. A report contains at most 128 tasks; COMMAND followed by the
numbers of other tasks prints their tables. The script counts and reports jobs that it cannot recompute.
"""

import csv
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict

import figures
import handlers
import printed
import summary
from text import Recorded, Trace, names
from walk import UNKNOWN, Bounds, Mistake, Thread, Walk


def options(path):
    """The recording's metadata: its clock, its recorder's declaration, and whether the processor is an x86."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    clock = re.search(r"\[(\w+)\]", (re.search(r"Option TRACECLOCK.*?\n([^\[]*\[.*?)(?=\[Option|\Z)", text, re.S) or [""])[0].split("]", 1)[-1])
    declared = re.search(r"((?:^|\n)(?:\w+:\w+\n|calls of[ \d]*\n|switches [^\n]*\n)+)", text)
    uname = re.search(r"Option UNAME.*?\n(.*)", text)
    machine = uname[1] if uname else ""
    x86 = not machine or re.search(r"x86|i[3-6]86|amd64", machine) is not None
    return clock and clock[1], declared and declared[1], x86


def left_out(job):
    """The reason why a job is not recomputed."""
    if job["task"]:
        return "marked"
    if job["runtime_ns"] or job["released_by"] == "period" or job["priority"] == "100":
        return "SCHED_DEADLINE"
    if job["sort"] == "irq-thread" or job["name"].startswith(("ksoftirqd/", "ktimers/")):
        return "of threads for handlers"
    return None


def released(job, wake, slack, rest):
    """The bounds of J, and the columns on the release. A possible rest of a job has no release."""
    start = int(job["start_ns"])
    if wake is None:
        return UNKNOWN, {"released_by": "unseen", "released_min_ns": None, "woken_ns": None}
    least, most = wake.due or (wake.time, wake.time)
    columns = {
        "released_by": "timer" if wake.due and wake.by != "period" else wake.by,
        "released_min_ns": least,
        "released_max_ns": most,
        "woken_ns": wake.time,
    }
    jitter = Bounds(max(start - slack - most, 0), max(start - least, 0))
    if rest:
        return UNKNOWN, columns
    return (Bounds(jitter.least, None) if wake.late else jitter), columns


def recompute(trace, job, carried):
    """All columns of a job that follow from the text."""
    thread, start, end = int(job["id"]), int(job["start_ns"]), int(job["end_ns"])
    runs = trace.runs[thread]
    at = next((at for at in range(carried.at, len(runs)) if runs[at].start >= start), len(runs))
    if at == len(runs) or runs[at].start != start:
        raise Mistake("it does not start there")
    carried.at = at
    known_windows = carried.knows_windows()
    walk = Walk(trace, thread, runs, at, end, carried, trace.after_lock.get((thread, start), (None, False)))
    if walk.end != end:
        raise Mistake("it does not end there")
    known_calls = trace.knows_calls(thread, job["name"], end)
    wake = trace.wakes.get((thread, start))
    rest = (thread, start) in trace.after_lock or (not known_calls and wake is not None and wake.from_wait)
    jitter, columns = released(job, wake, walk.own[0].slack, rest)
    terms, likely = walk.terms(trace, jitter, columns.get("released_max_ns"), known_calls, rest)
    for term, bounds in terms.items():
        columns[f"{term}_min_ns"], columns[f"{term}_max_ns"] = bounds
    if walk.unsure:
        for column in [f"{term}_{end}_ns" for term in ("ss", "ss_entry", "ss_exit", "c") for end in ("min", "max")]:
            del columns[column]
    columns["first_cpu"], columns["last_cpu"] = walk.own[0].cpu, walk.own[-1].cpu
    columns["preemptions"], columns["blockings"] = walk.preemptions, len(walk.waits)
    columns["longest_blocking_ns"] = max((end - begun for begun, end in walk.waits), default=None)
    if known_windows:
        columns["ss_likely_ns"] = likely
    delayed, displaced = Counter(), Counter()
    if wake:
        ready = wake.ready or wake.time
        delayed = trace.occupants(thread, ready, start, None) or Counter()
    for interval in walk.ready:
        took = trace.occupants(thread, *interval)
        if took is None:
            displaced.clear()
            break
        displaced += took
    return columns, terms, (delayed, displaced), walk


# The maximum number in a report.
MOST_TASKS = 128
# Longer than the largest recording takes, in s.
REPORT_TIMEOUT = 600


def batches(tasks, most):
    return [tasks[at : at + most] for at in range(0, len(tasks), most)]


def only(text, tasks):
    """The tables of these tasks, with the text after them."""
    paragraphs, wanted = [], False
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        heads = [at for at, line in enumerate(lines) if line.startswith("  term ")]
        if heads:
            wanted = summary.task_in(" ".join(line.strip() for line in lines[: heads[0]])) in tasks
        if wanted:
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def main():
    jobs_file, objects_file, tables_file, page_file, report_file, options_file, *command = sys.argv[1:]
    verbose = command[:1] == ["-v"]
    command = command[verbose:]
    clock, declared, x86 = options(options_file)
    if declared and re.search(r"^switches ", declared, re.M):
        sys.exit("a narrow recording, in which switches of other threads are missing, is not recomputed")
    with open(report_file, encoding="utf-8", errors="replace") as lines:
        recorded = Recorded(names(lines), declared, x86)
        lines.seek(0)
        trace = Trace(lines, recorded, clock == "mono")
    with open(jobs_file, newline="", encoding="utf-8", errors="replace") as file:
        jobs = list(csv.DictReader(file))
    summary.know_tasks(jobs)
    equal, wrong, without, shown = Counter(), Counter(), Counter(), 0
    carried, terms_of, causes_of, walk_of = defaultdict(Thread), {}, {}, {}

    def differs(what, text):
        nonlocal shown
        wrong[what] += 1
        shown += 1
        if verbose or shown <= 20:
            print(text)

    for job in sorted(jobs, key=lambda job: int(job["start_ns"])):
        reason = left_out(job)
        key = (job["sort"], job["id"])
        if reason:
            without[reason] += 1
            carried[key].forget()
            continue
        label = f"{job['name']}/{job['id']} at {job['start_ns']}"
        thread = carried[key]
        try:
            if job["sort"] in ("thread", "irq-thread"):
                columns, terms, causes, walk = recompute(trace, job, thread)
            else:
                columns, terms = handlers.recompute(trace, job)
                causes, walk = (), None
        except Mistake as mistake:
            if not job["flaw"]:
                differs("jobs", f"{mistake}: {label}")
            columns = None
        if job["flaw"]:
            without["flawed"] += 1
            thread.forget()
            continue
        if columns is None:
            continue
        terms_of[job["number"]] = terms
        causes_of[job["number"]], walk_of[job["number"]] = causes, walk
        for column, value in columns.items():
            said = job[column]
            if said == ("" if value is None else str(value)):
                equal[column] += 1
            else:
                differs(column, f"{column}: {said or 'nothing'}, recomputed {value}: {label}")

    def bounds_of(job, term):
        if job["number"] in terms_of:
            return terms_of[job["number"]][term]
        return Bounds(*(int(job[f"{term}_{end}_ns"]) if job[f"{term}_{end}_ns"] else None for end in ("min", "max")))

    with open(tables_file, encoding="utf-8") as file:
        tables = file.read()
    # Tasks are included in the order of their first jobs.
    listed = list(dict.fromkeys(summary.task_of(job) for job in jobs))
    of_handlers = {summary.task_of(job) for job in jobs if job["sort"] not in ("thread", "irq-thread")}
    for some in batches(listed[MOST_TASKS:], MOST_TASKS // 4) if command else ():
        chosen = sorted({summary.choice(task) for task in some if task not in of_handlers})
        choice = [word for task in chosen for word in ("--task", task)]
        if of_handlers & set(some):
            choice += ["--task", "*"]
        more = subprocess.run(
            command + choice, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=REPORT_TIMEOUT
        )
        tables += "\n\n" + only(more.stdout.decode(), set(some))
    cells, same, unmatched = summary.check(jobs, tables, bounds_of)
    equal["cells of tables"] = same
    for cell in cells:
        differs("cells of tables", cell)
    with open(objects_file, encoding="utf-8", errors="replace") as lines:
        objects = [json.loads(line) for line in lines]
    for job in objects:
        # `None` if unknown.
        walk = walk_of.get(str(job["number"]))
        of_thread = job["sort"] in ("thread", "irq-thread")
        job["missing_switches"] = walk.missing if walk else None if of_thread else 0
    rows = {int(job["number"]): job for job in jobs}
    objects_of = defaultdict(list)
    for job in objects:
        if job["flaw"] is None:
            objects_of[summary.task_of(rows[job["number"]])].append(job)

    def cpu_of_waker(job):
        wake = trace.wakes.get((job["id"], job["start_ns"])) if not rows[job["number"]]["task"] else None
        return wake and wake.cpu

    names_of = printed.Names(trace.comms)
    sentences, same = printed.check_terminal(tables, objects_of, summary.task_in, names_of, cpu_of_waker)
    equal["sentences"] = same
    for sentence in sentences:
        differs("sentences", sentence)
    with open(page_file, encoding="utf-8") as file:
        page = file.read()

    def task_of(job):
        return summary.task_of(rows[job["number"]])

    def cells_of(task):
        members = [rows[job["number"]] for job in objects_of[task]]
        return {term: summary.table([bounds_of(row, term) for row in members]) for term in summary.TERMS}

    room = set(listed[:MOST_TASKS])
    head = summary.key_figures([job for job in jobs if summary.task_of(job) in room], bounds_of)
    marks, same = printed.check_page(page, objects, objects_of, task_of, cells_of, head, names_of, cpu_of_waker)
    equal["figures of the page"] = same
    for mark in marks:
        differs("figures of the page", mark)
    members, same = figures.check(jobs, objects_file, causes_of, walk_of)
    equal["figures of JSON"] = same
    for member in members:
        differs("figures of JSON", member)
    if unmatched:
        without["tables"] = len(unmatched)
        if verbose:
            print("tables left out:", unmatched)
    print(f"equal: {dict(equal)}; left out: {dict(without)}; different: {dict(wrong)}")
    sys.exit(1 if wrong or not equal else 0)


main()
