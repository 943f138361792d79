"""Checks, in a recording of a guest merged with that of its host, that all events of the guest occur while its CPU runs.

usage: guest.py REPORT.txt TABLES.txt

REPORT is the text of `trace-cmd report -t -N` of the merged recording, where CPU 0 is the guest's, and TABLES that of `punctual trace
report`, which contains the uncertainty of the times. An emulated CPU is a thread of the host and executes only while that thread runs.
So the distance of each guest event from a run of the thread is at most the uncertainty; and times that are shifted by more must be
detected as wrong, or the recording proves nothing.
"""

import bisect
import re
import sys

LINE = re.compile(r"^.*?-(\d+)\s+\[(\d+)\]\s*(?:\S+\s+)?(?:(\d+)\.)?(\d+):\s+(\w+):\s*(.*)$")
LOST = re.compile(r"CPU:(\d+) \[.*EVENTS? DROPPED")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=.* ==> next_comm=(.*) next_pid=(\d+) next_prio=")
OFF = re.compile(r"its times ± ([\d ]+(?:\.\d+)?) (ns|µs|ms)")
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6}

# QEMU's name for the thread that is the guest's only CPU.
THREAD = "CPU 0/TCG"
# The minimum numbers of events and pauses, so that it is not accidental that each event is within a
# run of the thread.
EVENTS, PAUSES = 1000, 100
# Times shifted beyond the tolerance must be detected as wrong: by a multiple of the tolerance, plus
# a number of ns.
TIMES, MORE = 2, 100_000


def read(lines):
    """The times of events in the guest, and the thread's runs, by the host's switches."""
    events, runs, since, lost = [], [], {}, 0
    for line in lines:
        match = LINE.match(line)
        if not match:
            lost += LOST.search(line) is not None
            continue
        cpu, time = int(match[2]), int(match[3] or 0) * 10**9 + int(match[4])
        if cpu == 0:
            events.append(time)
        elif match[5] == "sched_switch" and (switch := SWITCH.search(match[6])):
            # The previous thread has run since the last switch there, regardless of its next
            # thread: some kernels omit switches.
            if switch[1] == THREAD:
                runs.append((since.get(cpu, 0), time))
            since[cpu] = time
    return events, sorted(runs), lost


def furthest(events, runs, shift):
    """The maximum distance of an event, shifted by this much, from the nearest run, in ns."""
    starts = [start for start, _ in runs]
    most = 0
    for event in events:
        index = bisect.bisect_right(starts, event + shift)
        before = event + shift - max((end for _, end in runs[max(index - 2, 0):index]), default=-float("inf"))
        after = starts[index] - event - shift if index < len(starts) else float("inf")
        most = max(most, min(before, after))
    return most


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        events, runs, lost = read(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        off = OFF.search(file.read())
    if off is None:
        sys.exit("the report does not say how far the times may be off")
    slack = float(off[1].replace(" ", "")) * UNITS[off[2]]
    if runs:
        # The time before the first run and after the last was not recorded.
        events = [event for event in events if runs[0][1] <= event <= runs[-1][0]]
    if lost or len(events) < EVENTS or len(runs) < PAUSES:
        sys.exit(f"{len(events)} events, {len(runs)} runs of {THREAD} and {lost} losses: too little is known")
    off_by = furthest(events, runs, 0)
    shifts = [sign * (TIMES * slack + MORE) for sign in (-1, 1)]
    found = {shift: furthest(events, runs, shift) for shift in shifts}
    print(f"{len(events)} events of the guest, {len(runs)} runs of its CPU: none further from a run than {off_by / 1e3:.1f} µs, of {slack / 1e3:.1f}")
    print("shifted: " + ", ".join(f"by {shift / 1e3:+.0f} µs, {far / 1e3:.1f} µs" for shift, far in found.items()))
    if off_by > slack:
        sys.exit("the clocks are related wrongly")
    if min(found.values()) <= slack:
        sys.exit("shifted times are right as well, so nothing is shown")


main()
