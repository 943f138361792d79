"""Recomputes the terms of a job by the definitions in docs/book/src/internals/tracing.md."""

from collections import namedtuple

# A term, from its minimum to its maximum; None is unknown.
Bounds = namedtuple("Bounds", "least most")
UNKNOWN = Bounds(None, None)


def at_least(ns):
    return Bounds(ns, None) if ns else UNKNOWN


def response(jitter, window, shared=0):
    """R = J + W. It is no shorter than W if J is unknown. If the start is uncertain, this much is in J or in W."""
    if jitter.least is None:
        return at_least(window.least)
    most = None if jitter.most is None or window.most is None else jitter.most + window.least
    return Bounds(jitter.least + window.least + shared, most)


class Thread:
    """The state that continues from one job of a thread to the next."""

    def __init__(self):
        self.interrupted = False
        # The last few windows at an entry and at an exit of the scheduler.
        self.seen = {"entry": [], "exit": []}
        # Whether an earlier part was not followed.
        self.unsure = False
        self.at = 0

    def knows_windows(self):
        """Whether these are the last ones regardless of earlier ones."""
        return not self.unsure or all(len(seen) == 8 for seen in self.seen.values())

    def forget(self):
        self.seen = {"entry": [], "exit": []}
        self.unsure, self.interrupted = True, None


class Sums:
    def __init__(self):
        self.blocking = self.interference = self.entry = self.exit = 0
        self.maybe_entry = self.maybe_exit = self.maybe = 0
        self.likely = 0
        # Parts of blocking and interference that a missing switch may have ended earlier.
        self.maybe_blocking = self.maybe_interference = 0

    def copy(self):
        other = Sums()
        other.__dict__.update(self.__dict__)
        return other


class Mistake(Exception):
    """The text contradicts the beginning or end of the job."""


class Walk:
    def __init__(self, trace, thread, runs, at, end, carried, resumed=(None, False)):
        self.carried = carried
        self.sums, self.window, self.side = Sums(), 0, "entering"
        self.wait = self.futex = None
        self.in_handler = self.spun = self.slept = self.unsure = False
        self.preemptions, self.waits, self.ready = 0, [], []
        self.missing = 0
        self.settled = runs[at].start
        lock, calls = resumed
        if calls:
            self.futex = (self.settled, True, self.sums.copy(), 0)
        if lock or calls:
            # It begins in the middle of a wait.
            self.wait, self.side = ["lock" if lock else "futex", self.settled, lock, True], "out"
        self.own = []
        marks = trace.marks[thread]
        mark = first_mark(marks, runs[at].start)
        state = None
        while True:
            run = runs[at]
            self.own.append(run)
            if state == "R":
                if not self.wait:
                    self.ready.append((self.own[-2].end, run.start, self.own[-2].cpu))
                self.settle(run.start, "interference")
            else:
                self.settle(run.start, "asleep")
            self.in_handler = False
            self.missing += run.slack > 0
            if len(self.own) > 1:
                self.may_have_run(run.slack)
            if self.wait and self.wait[0] == "kernel":
                self.end_wait(run.start)
            if not self.wait:
                self.side = "entering"
            while mark < len(marks) and marks[mark].time <= run.end:
                # Events at the instant of a switch are before or after the switch.
                if marks[mark].time >= run.start:
                    self.mark(marks[mark], trace)
                mark += 1
            self.settle(run.end)
            if not self.wait:
                self.ambiguous(self.side == "entering", True)
            state = run.state
            if state == "X" and self.wait:
                self.end_wait(run.end)
            if state == "R":
                self.preemptions += not self.wait
            elif state == "X" or not self.sleeps(run):
                self.slept = state != "X"
                break
            if run.end >= end:
                raise Mistake("it does not end there")
            at += 1
            if at == len(runs) or runs[at].start > end:
                raise Mistake("it does not go on")
        self.end = run.end

    def settle(self, time, doing="running"):
        past, self.settled = time - self.settled, time
        if self.wait:
            self.sums.blocking += past
        elif doing == "interference" or self.in_handler:
            self.sums.interference += past
        elif self.side == "leaving":
            self.sums.exit += past
        elif doing == "running":
            self.window += past

    def may_have_run(self, ns):
        """Before this run, the thread may have run this long already, unless it waits for a lock that it takes itself."""
        if not self.wait:
            self.sums.maybe_interference += ns
        elif self.wait[0] == "kernel":
            self.sums.maybe_blocking += ns
        else:
            return
        if ns:
            self.sums.likely = None

    def sleeps(self, run):
        """Whether going to sleep is part of the job: a wait for a lock."""
        if self.wait:
            self.wait[3] = True
            return True
        if self.futex and self.futex[1]:
            entered, _, self.sums, ready = self.futex
            # All of the time since the call began was the wait.
            del self.ready[ready:]
            self.sums.blocking += run.end - entered
            self.window, self.side = 0, "out"
            self.waits = [wait for wait in self.waits if wait[0] < entered]
            self.wait = ["futex", entered, None, True]
            return True
        if run.state == "D":
            self.begin_wait(run.end, "kernel", None)
            self.wait[3] = True
            return True
        return False

    def mark(self, mark, trace):
        time = mark.time
        self.settle(time)
        if mark.kind == "handler":
            self.in_handler = mark.what
            self.carried.interrupted = True
        elif mark.kind == "call":
            self.proof()
        elif mark.kind == "waking":
            # After a job that was not followed, it is unknown whether there was an interrupt.
            self.unsure |= self.carried.interrupted is None
            if self.carried.interrupted is False:
                self.proof()
        elif mark.kind == "schedule_enter":
            self.proof()
            if not self.wait:
                self.side = "leaving"
        elif mark.kind == "schedule_exit":
            if not self.wait and self.side != "out":
                if self.side == "entering":
                    self.sums.entry += self.window
                    self.window = 0
                self.side, self.carried.interrupted = "out", False
        elif mark.kind == "futex_enter":
            self.proof()
            if mark.what is not None and not self.wait:
                self.futex = (time, mark.what, self.sums.copy(), len(self.ready))
        elif mark.kind == "futex_exit":
            if self.wait and self.wait[0] == "futex":
                self.end_wait(time)
            self.futex = None
            self.proof()
        elif mark.kind == "contention_begin" and not self.wait:
            lock, spins = mark.what
            if spins and not trace.recorded.handlers:
                # It may be a handler that spins.
                self.spun = True
            else:
                if self.side == "out" and not spins:
                    self.window = 0
                self.begin_wait(time, "lock", lock)
        elif mark.kind == "contention_end" and self.wait and self.wait[:1] + self.wait[2:3] == ["lock", mark.what[0]]:
            # A mutex that first spins and then sleeps begins twice, and ends once.
            self.end_wait(time)

    def begin_wait(self, time, what, lock):
        self.wait = [what, time, lock, False]

    def end_wait(self, time):
        self.waits.append((self.wait[1], time))
        if self.wait[0] == "kernel":
            self.side = "entering"
        self.wait = None

    def proof(self):
        """Only the thread's own code does this, outside the scheduler."""
        if self.wait or self.side == "leaving":
            return
        if self.side == "entering":
            self.ambiguous(True, False)
        self.window, self.side, self.carried.interrupted = 0, "out", False

    def ambiguous(self, entry, leaving):
        """A window in which the scheduler cannot be distinguished from the thread's own code."""
        window, self.window, seen, sums = self.window, 0, self.carried.seen, self.sums
        if entry != leaving:
            last = seen["entry" if entry else "exit"]
            last.append(max(window, 1))
            del last[:-8]
        wanted = [seen[side] for side, is_in in (("entry", entry), ("exit", leaving)) if is_in]
        if sums.likely is not None:
            sums.likely = sums.likely + min(window, sum(map(min, wanted))) if all(wanted) else None
        sums.maybe_entry += window if entry else 0
        sums.maybe_exit += window if leaving else 0
        sums.maybe += window

    def terms(self, trace, released, latest, known_calls, rest):
        """All terms, and related figures. It may be the rest of a job, after a wait for a lock; `latest` is its release."""
        recorded, sums = trace.recorded, self.sums
        start, slack = self.own[0].start, self.own[0].slack
        length = self.end - start
        whole = not rest and (known_calls or not self.slept)
        locks = known_calls and recorded.contention and not self.spun
        handlers, wakeups = recorded.handlers, True
        every = locks and handlers
        terms = {"w": Bounds(length, length + slack if whole else None)}
        terms["j"] = released
        # It starts after its release.
        shared = 0 if latest is None else min(slack, max(start - latest, 0))
        terms["r"] = response(released, terms["w"], shared)
        blocking, interference = sums.blocking - sums.maybe_blocking, sums.interference - sums.maybe_interference
        terms["i"], terms["b"] = at_least(interference), at_least(blocking)
        terms |= dict.fromkeys(("ss", "ss_entry", "ss_exit", "c"), UNKNOWN)
        likely = None
        if whole:
            executed = length - sums.blocking - sums.interference - sums.entry - sums.exit - sums.maybe
            unsure = slack + sums.maybe_blocking + sums.maybe_interference

            def between(certain, maybe):
                return Bounds(certain if every else 0, certain + maybe + unsure)

            terms["ss"] = between(sums.entry + sums.exit, sums.maybe)
            terms["ss_entry"] = between(sums.entry, sums.maybe_entry)
            terms["ss_exit"] = between(sums.exit, sums.maybe_exit)
            if locks:
                terms["b"] = Bounds(blocking, sums.blocking)
            if handlers and wakeups:
                terms["i"] = Bounds(interference if locks else 0, sums.interference)
            if every and sums.maybe and sums.likely is not None and not unsure:
                likely = sums.entry + sums.exit + min(sums.likely, sums.maybe)
            terms["c"] = Bounds(executed if every else 0, executed + sums.maybe + unsure)
        return terms, likely


def first_mark(marks, time):
    low, high = 0, len(marks)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if marks[middle].time < time else (low, middle)
    return low
