"""Recomputes what `punctual trace report --csv` says of each job from the text of `trace-cmd report -t` alone.

usage: recompute.py JOBS.csv < REPORT

It knows nothing of the program but the definitions in docs/tracing.md. What of a column it cannot recompute it counts, and says.
"""

import bisect
import csv
import re
import sys
from collections import Counter, defaultdict

LINE = re.compile(r"^.*?-(\d+)\s+\[(\d+)\]\s+(?:\S+\s+)?(\d+)\.(\d{9}):\s+(\w+):\s*(.*)$")
SWITCH = re.compile(r"^(.*):(\d+) \[(-?\d+)\] (\S+) ==> (.*):(\d+) \[(-?\d+)\]$")
SWITCH_RAW = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) .*next_pid=(\d+)")
PID = re.compile(r"(?:^|\s)pid=(\d+)")
WAKEUP = re.compile(r":(\d+) \[-?\d+\]")
TIMER = re.compile(r"hrtimer=(\S+)")
EXPIRES = re.compile(r"(?:^|\s)(?:expires|now)=(\d+)")


class Trace:
    def __init__(self, lines):
        self.runs = defaultdict(list)  # by thread: [in, out, CPU, state]
        self.wakings = defaultdict(list)  # by thread: (time, when the timer was due that is being served)
        self.created = defaultdict(list)
        self.moved = defaultdict(list)
        self.futexes = defaultdict(list)  # by thread: (enter, exit)
        self.contentions = defaultdict(list)
        self.handlers = defaultdict(list)  # by CPU: (entry, exit), not nested
        self.proofs = defaultdict(list)  # by thread: when it was certainly outside the scheduler
        self.schedule = defaultdict(list)  # by thread: (time, whether it leaves the scheduler)
        self.events = Counter()
        running, depth, entered = {}, Counter(), {}
        due, serving, open_call, contended = {}, {}, {}, defaultdict(list)
        for line in lines:
            found = LINE.match(line)
            if not found:
                continue
            thread, cpu = int(found[1]), int(found[2])
            time = int(found[3]) * 10**9 + int(found[4])
            event, rest = found[5], found[6]
            self.events[event] += 1
            if event == "sched_switch":
                out = SWITCH.match(rest)
                if out:
                    before, state, after = int(out[2]), out[4], int(out[6])
                else:
                    out = SWITCH_RAW.search(rest)
                    before, state, after = int(out[1]), out[2], int(out[3])
                run = running.pop(cpu, None)
                if run and run[0] == before:
                    self.runs[before].append((run[1], time, cpu, state.rstrip("+")))
                running[cpu] = (after, time)
            elif event == "sched_waking":
                woken = int(PID.search(rest)[1])
                self.wakings[woken].append((time, serving.get(cpu)))
                self.proofs[thread].append((time, "waking"))
            elif event == "sched_wakeup_new":
                self.created[int((PID.search(rest) or WAKEUP.search(rest))[1])].append(time)
            elif event == "sched_migrate_task":
                self.moved[int(PID.search(rest)[1])].append(time)
            elif event == "hrtimer_start":
                due[TIMER.search(rest)[1]] = int(EXPIRES.search(rest)[1])
            elif event == "hrtimer_expire_entry":
                # One that may be late by the slack of its thread can expire before it is due at the latest.
                expires = due.pop(TIMER.search(rest)[1], None)
                serving[cpu] = expires and min(expires, int(EXPIRES.search(rest)[1]))
            elif event == "hrtimer_expire_exit":
                serving.pop(cpu, None)
            elif event in ("schedule_enter", "schedule_exit"):
                self.schedule[thread].append((time, event == "schedule_exit"))
            elif event in ("contention_begin", "contention_end"):
                if event == "contention_begin":
                    # What a handler waits for, its thread does not; nor what the next thread does before it is called so.
                    own = not depth[cpu] and running.get(cpu, (thread,))[0] == thread
                    contended[thread].append(time if own else None)
                elif contended[thread]:
                    begun = contended[thread].pop()
                    if begun is not None:
                        self.contentions[thread].append((begun, time))
            elif event.startswith(("sys_enter_", "sys_exit_")):
                self.proofs[thread].append((time, "call"))
                if "futex" in event:
                    if event.startswith("sys_enter_"):
                        open_call[thread] = time
                    elif thread in open_call:
                        self.futexes[thread].append((open_call.pop(thread), time))
            elif is_handler(event):
                if event.endswith("_entry"):
                    if depth[cpu] == 0:
                        entered[cpu] = time
                    depth[cpu] += 1
                elif depth[cpu] > 0:
                    depth[cpu] -= 1
                    if depth[cpu] == 0:
                        self.handlers[cpu].append((entered[cpu], time))


def is_handler(event):
    vectors = (
        "local_timer reschedule call_function call_function_single irq_work x86_platform_ipi error_apic spurious_apic "
        "thermal_apic threshold_apic deferred_error_apic"
    )
    name = event.removesuffix("_entry").removesuffix("_exit")
    return name != event and (name in ("irq_handler", "softirq") or name in vectors.split())


def union(spans):
    merged = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def within(spans, start, end):
    """The parts of sorted spans that do not overlap which are between two instants."""
    at = max(0, bisect.bisect_right(spans, (start,)) - 1)
    found = []
    while at < len(spans) and spans[at][0] < end:
        span = (max(spans[at][0], start), min(spans[at][1], end))
        if span[0] < span[1]:
            found.append(span)
        at += 1
    return found


def without(spans, others):
    """Spans less others, both sorted and without overlap."""
    left = []
    for start, end in spans:
        for a, b in within(others, start, end):
            if start < a:
                left.append((start, a))
            start = b
        if start < end:
            left.append((start, end))
    return left


def length(spans):
    return sum(end - start for start, end in spans)


def last(sorted_spans, time):
    """The span that began last before an instant, or at it."""
    at = bisect.bisect_right(sorted_spans, (time, float("inf")))
    return sorted_spans[at - 1] if at else None


def recompute(trace, job):
    """The columns of a job that follow from the text, and what does not."""
    thread, start, end = int(job["id"]), int(job["start_ns"]), int(job["end_ns"])
    runs = trace.runs[thread]
    first = bisect.bisect_left(runs, (start,))
    if first == len(runs) or runs[first][0] != start:
        return {"start_ns": None}
    own = []
    while first + len(own) < len(runs) and runs[first + len(own)][1] <= end:
        own.append(runs[first + len(own)])
    if not own or own[-1][1] != end or own[-1][3] == "R":
        return {"end_ns": None}
    columns = {"first_cpu": own[0][2], "last_cpu": own[-1][2]}

    # The first wake-up since the thread ran last.
    before = runs[first - 1][1] if first else 0
    wakings = trace.wakings[thread]
    at = bisect.bisect_right(wakings, (before, float("inf")))
    woken = wakings[at] if at < len(wakings) and wakings[at][0] <= start else None
    if job["released_by"] in ("wake", "timer") and woken:
        columns["woken_ns"] = woken[0]
        release = woken[0] if job["released_by"] == "wake" else woken[1]
        if release is not None and job["released_min_ns"] == job["released_max_ns"]:
            columns["released_min_ns"] = release
            columns["j_max_ns"] = start - release
            columns["r_max_ns"] = end - release
    columns["w_max_ns"] = end - start

    # Sleeps that do not end the job are waits for locks; so are contentions, asleep or not.
    waits, ready = [], []
    contentions, futexes = trace.contentions[thread], trace.futexes[thread]
    for (_, out, _, state), (back, *_) in zip(own, own[1:]):
        if state == "R":
            ready.append((out, back))
            continue
        lock = last(contentions, out)
        call = last(futexes, out)
        if call and call[1] >= back:
            waits.append(call)
        elif lock and lock[1] >= back:
            waits.append(lock)
        else:
            waits.append((out, back))
    columns["preemptions"] = sum(1 for out, back in ready if not within(union(waits), out, back))
    waits += [wait for wait in contentions if start < wait[1] and wait[0] < end]
    waits = within(union(waits), start, end)
    columns["b_max_ns"] = length(waits)
    on_cpu = [(run[0], run[1]) for run in own]
    handled = [span for run in own for span in within(trace.handlers[run[2]], run[0], run[1])]
    columns["i_max_ns"] = length(without(union(ready + handled), waits))
    rest = end - start - columns["b_max_ns"] - columns["i_max_ns"]
    if trace.events["schedule_exit"]:
        overhead = inside_scheduler(trace, thread, on_cpu)
        columns["ss_max_ns"] = columns["ss_min_ns"] = length(without(without(overhead, waits), union(handled)))
    known = all(job[least] != "" and job[least] == job[most] for least, most in (("b_min_ns", "b_max_ns"), ("i_min_ns", "i_max_ns")))
    if job["ss_max_ns"] and known:
        columns["c_min_ns"] = rest - int(job["ss_max_ns"])
        columns["c_max_ns"] = rest - int(job["ss_min_ns"])
    return columns


def inside_scheduler(trace, thread, on_cpu):
    """From each switch to the thread until it leaves the scheduler, and from where it enters it until the switch away."""
    spans, calls = [], trace.schedule[thread]
    for start, end in on_cpu:
        entered, at = start, bisect.bisect_left(calls, (start,))
        while at < len(calls) and calls[at][0] <= end:
            time, leaves = calls[at]
            if leaves and entered is not None:
                spans.append((entered, time))
                entered = None
            elif not leaves:
                entered = time
            at += 1
        if entered is not None and entered != start:
            spans.append((entered, end))
    return union(spans)


def main():
    jobs_file, verbose = sys.argv[1], "-v" in sys.argv[2:]
    trace = Trace(sys.stdin)
    equal, wrong, left_out = Counter(), Counter(), Counter()
    shown = 0
    with open(jobs_file, newline="", encoding="utf-8", errors="replace") as file:
        for job in csv.DictReader(file):
            reason = (
                "handlers" if job["sort"] not in ("thread", "irq-thread")
                else "marked" if job["task"]
                else "SCHED_DEADLINE" if job["runtime_ns"] or job["released_by"] == "period"
                else "flawed" if job["flaw"]
                else "of threads for handlers" if job["sort"] == "irq-thread" or job["name"].startswith("ksoftirqd/")
                else None
            )
            if reason:
                left_out[reason] += 1
                continue
            for column, value in recompute(trace, job).items():
                least = column.replace("_max_", "_min_")
                if value is not None and (job[column] == "" or column != least and column[0] not in "wc" and job[least] != job[column]):
                    left_out[f"{column} not exact"] += 1
                elif value is None or int(job[column]) != value:
                    wrong[column] += 1
                    if verbose or shown < 20:
                        shown += 1
                        print(f"{column}: {job[column]}, recomputed {value}: {job['name']}/{job['id']} at {job['start_ns']}")
                else:
                    equal[column] += 1
    print(f"equal: {dict(equal)}; left out: {dict(left_out)}; different: {dict(wrong)}")
    sys.exit(1 if wrong or not equal else 0)


main()
