"""Reads the text of `trace-cmd report -t -N`: the runs of each thread, its events, and its wake-ups."""

import bisect
import re
from collections import Counter, defaultdict, namedtuple

# trace-cmd 3.1.6 sometimes prints times of the same file without a point, in ns, if the file does
# not name its clock.
LINE = re.compile(r"^.*?-(\d+)\s+\[(\d+)\]\s*(?:\S+\s+)?(?:(\d+)\.)?(\d+):\s+(\w+):\s*(.*)$")
LOST = re.compile(r"^(?:\S+:)?\s*CPU:(\d+) \[.*EVENTS? DROPPED")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) next_prio=")
WOKEN = re.compile(r"(?:^|\s)pid=(\d+) prio=(-?\d+)")
TARGET = re.compile(r"(?:target|dest)_cpu=(\d+)")
TIMER = re.compile(r"hrtimer=(\S+)")
EXPIRES = re.compile(r"(?:^|\s)(?:expires|now)=(\d+)")
LOCK = re.compile(r"^(?:lock_addr=)?(\S+)")
FLAGS = re.compile(r"flags=([^\s)]+)")
WHICH = re.compile(r"(?:irq|vec|vector)=(\d+)")
FUTEX = re.compile(r"uaddr: (?:0x)?([0-9a-f]+),? op: (?:0x)?([0-9a-f]+),? val: (?:0x)?([0-9a-f]+)")

# The events that the analysis uses; between others no known event has occurred.
UNDERSTOOD = re.compile(
    r"sched_(switch|waking|wakeup|wakeup_new|migrate_task|pi_setprio)$|(irq_handler|softirq)_(entry|exit)$|"
    r"hrtimer_(start|expire_entry|expire_exit)$|contention_(begin|end)$|sys_(enter|exit)|schedule_(enter|exit)$|"
    r"(irq|preempt)_(disable|enable)$|(nmi|irq|softirq|thread)_noise$|raw_data$"
)
VECTORS = re.compile(
    r"(local_timer|reschedule|call_function|call_function_single|irq_work|x86_platform_ipi|error_apic|spurious_apic|"
    r"thermal_apic|threshold_apic|deferred_error_apic|vector_\w+)_(entry|exit)$"
)
KERNEL_THREAD = re.compile(r"(irq|ksoftirqd|ktimers|migration|kworker|cpuhp|rcuc)/|rcu_preempt")
SOFTIRQ_THREAD = re.compile(r"(ksoftirqd|ktimers)/")

# Spinning locks: `LCB_F_SPIN` without any of the flags of sleeping locks.
SPIN, SLEEP = 1, 8 | 16 | 32
LOCK_FLAGS = {"SPIN": 1, "READ": 2, "WRITE": 4, "RT": 8, "PERCPU": 16, "MUTEX": 32}

# No interrupt is handled this late, so a timer's clock that is further behind is not the trace's.
SAME_CLOCK = 10**9

# `slack`: the thread may have been switched in this much earlier.
Run = namedtuple("Run", "start end cpu state slack")
Mark = namedtuple("Mark", "time kind what", defaults=[None])
# `from_wait`: another thread or a timer woke it, which may end a wait for a lock.
Wake = namedtuple("Wake", "time by due late from_wait cpu ready", defaults=[None])
# The results of a handler: its end, the time for which others displaced it, its waits, and the due
# time of the first timer in it.
Handled = namedtuple("Handled", "end displaced waits due clean")


def names(lines):
    """The number of events of each name."""
    found = (LINE.match(line) for line in lines)
    return Counter(match[5] for match in found if match)


class Recorded:
    """The events that the recording contains if they occurred: those its recorder has declared, or else those that occur in it."""

    def __init__(self, events, declared, x86):
        self.calls_of = None
        if declared is not None:
            events = Counter()
            for line in declared.splitlines():
                if line.startswith("calls of"):
                    self.calls_of = {int(word) for word in line.split()[2:]}
                elif ":" in line:
                    events[line.split(":")[1]] += 1

        def all_of(*kinds):
            return all(events[kind] for kind in kinds)

        self.interrupts = all_of("irq_handler_entry", "irq_handler_exit")
        vectors = [kind for kind in events if VECTORS.match(kind)]
        ends = [any(kind.endswith(end) for kind in vectors) for end in ("_entry", "_exit")]
        seen = all_of("local_timer_entry", "local_timer_exit") if declared is not None else all(ends)
        self.vectors = seen or (declared is None and not x86)
        self.softirqs = all_of("softirq_entry", "softirq_exit")
        self.handlers = self.interrupts and self.vectors and self.softirqs
        self.timers = all_of("hrtimer_start", "hrtimer_expire_entry", "hrtimer_expire_exit")
        self.contention = all_of("contention_begin", "contention_end")
        enters = [kind for kind in events if re.match("sys_enter_futex", kind)]
        self.futexes = bool(enters) and any(re.match("sys_exit_futex", kind) for kind in events)


class Trace:
    def __init__(self, lines, recorded, monotonic):
        self.recorded, self.monotonic = recorded, monotonic
        self.runs = defaultdict(list)
        self.marks = defaultdict(list)
        self.wakes = {}  # by thread and the beginning of a run: the wake-up that caused it
        self.has_calls = {}  # by thread: the time from which on its system calls are known to be recorded
        self.comm = {}
        self.comms = defaultdict(set)  # by thread: all names that it had
        self.handled = {}  # by sort, number, CPU and beginning of a handler
        self.parked = {}  # by thread: the softirq that was displaced with it
        self.doubtful = []  # times at which a thread was running without a switch to it
        self.moves = defaultdict(list)  # by thread: the times and CPUs of its arrivals, to wait or to run
        self.occupied = defaultdict(list)  # by CPU: the threads that occupy it and their start times, or a handler instead of a thread
        self.conditions = set()
        self.cpu = defaultdict(Cpu)
        self.early, self.pending, self.awake = {}, {}, set()
        self.place = {}  # by thread: the CPU on which it waits or ran last
        self.ready = {}  # by thread that waits for a CPU: since when, and whether it is certain to have left the one before
        self.in_futex, self.contends = set(), {}  # threads that wait for a lock in a call, or for this one of the kernel
        self.asleep_for_lock = {}
        self.after_lock = {}  # by thread and the beginning of a run: the lock of the kernel that it slept for before, and whether in a call
        for thread in recorded.calls_of or ():
            self.has_calls[thread] = 0
        for line in lines:
            if found := LINE.match(line):
                thread, cpu = int(found[1]), int(found[2])
                self.event(thread, cpu, int(found[3] or 0) * 10**9 + int(found[4]), found[5], found[6])
            elif lost := LOST.match(line):
                self.cpu[int(lost[1])].lost()

    def event(self, thread, number, time, event, rest):
        cpu, recorded = self.cpu[number], self.recorded
        cpu.number = number
        if not (UNDERSTOOD.match(event) or VECTORS.match(event)):
            return
        cpu.before, cpu.last = cpu.last, time
        marks, occupied = self.marks[thread], self.occupied[number]
        contends = event.startswith("contention_")
        if thread and cpu.idle is not None and self.follows_idle(cpu, thread, time, contends):
            self.switch_to(cpu, thread, time, time - max(cpu.idle, self.ready[thread][0]))
            cpu.left = None
        if not contends:
            # A thread contends for locks behind the event of its switch, so this does not show that
            # it runs.
            cpu.idle = None if thread else time
        if not occupied:
            # The thread of the first event of a CPU occupies it, and may be woken before it sleeps.
            occupied.append((time, thread))
            self.awake.add(thread)
        elif not cpu.frames and thread not in (occupied[-1][1], cpu.left):
            # The switch to it is missing; the kernel does not count some missing switches as lost.
            occupied.append((time, thread))
            self.doubtful.append(time)
        if event == "sched_switch":
            self.switch(cpu, number, time, rest)
        elif event in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            found = WOKEN.search(rest)
            woken, priority = int(found[1]), int(found[2])
            self.arrives(woken, time, int(TARGET.search(rest)[1]))
            if event == "sched_waking":
                if not cpu.frames and priority != 0 and recorded.handlers:
                    marks.append(Mark(time, "waking"))
                self.waking(cpu, thread, woken, self.wake(cpu, thread, time, "wake"))
            else:
                new = event == "sched_wakeup_new"
                if new and thread in self.has_calls:
                    self.has_calls.setdefault(woken, time)
                self.wakeup(woken, self.wake(cpu, thread, time, "new" if new else "wake"))
        elif event == "sched_migrate_task":
            self.arrives(int(WOKEN.search(rest)[1]), time, int(TARGET.search(rest)[1]))
        elif event == "hrtimer_start" and recorded.timers:
            self.timers[TIMER.search(rest)[1]] = int(EXPIRES.search(rest)[1])
        elif event == "hrtimer_expire_entry" and recorded.timers:
            cpu.fires(TIMER.search(rest)[1], int(EXPIRES.search(rest)[1]), time, self.timers, self.monotonic)
        elif event == "hrtimer_expire_exit" and recorded.timers:
            if cpu.firing and cpu.firing[0] == TIMER.search(rest)[1]:
                cpu.firing = None
        elif event in ("schedule_enter", "schedule_exit"):
            marks.append(Mark(time, event))
        elif event in ("contention_begin", "contention_end"):
            # A wait of a handler is not a wait of its thread; neither is that of the next thread
            # before it is named.
            if recorded.contention and cpu.frames:
                cpu.frames[-1].contends(LOCK.match(rest)[1], time, event.endswith("begin"))
            elif recorded.contention and cpu.running in (None, thread):
                flags = FLAGS.search(rest)
                spinning = flags and spins(flags[1])
                marks.append(Mark(time, event, (LOCK.match(rest)[1], spinning)))
                self.contends.pop(thread, None)
                if event.endswith("begin") and not spinning:
                    self.contends[thread] = LOCK.match(rest)[1]
        elif event.startswith("sys_"):
            self.has_calls.setdefault(thread, time)
            self.contends.pop(thread, None)
            if "futex" in event and recorded.futexes:
                waits = None if "exit" in event else self.futex(rest)
                marks.append(Mark(time, "futex_exit") if "exit" in event else Mark(time, "futex_enter", waits))
                update(self.in_futex, thread, waits)
            else:
                marks.append(Mark(time, "call"))
        elif self.is_handler(event):
            actor = VECTORS.match(event)[1] if VECTORS.match(event) else (event.rsplit("_", 1)[0], WHICH.search(rest)[1])
            if ended := cpu.handler(actor, event.endswith("_entry")):
                self.handled[sort_and_number(event, actor, rest) + (number, ended.entry)] = ended.came_to(time)
            # Between the event of a switch and the switch itself, the CPU already belongs to the
            # next thread.
            after = cpu.running if thread == cpu.left else thread
            self.occupied[number].append((time, None if cpu.frames else after))
            marks.append(Mark(time, "handler", bool(cpu.frames)))

    timers = {}

    def is_handler(self, event):
        if VECTORS.match(event):
            return self.recorded.vectors
        return {"irq_handler": self.recorded.interrupts, "softirq": self.recorded.softirqs}.get(event.rsplit("_", 1)[0], False)

    def switch(self, cpu, number, time, rest):
        out = SWITCH.match(rest)
        before, after, state = int(out[2]), int(out[5]), left_as(out[3])
        self.comm[before], self.comm[after] = out[1], out[4]
        self.comms[before].add(out[1])
        self.comms[after].add(out[4])
        if len(cpu.frames) == 1 and cpu.frames[0].actor[0] == "softirq":
            # As under PREEMPT_RT: it migrates with its thread.
            self.parked[before] = (cpu.frames[0], time)
        if cpu.running == before and before in self.awake:
            self.runs[before].append(Run(cpu.since, time, number, state, cpu.slack))
        self.awake.discard(before)
        self.pending.pop(before, None)
        if state == "R":
            self.early.pop(before, None)
        if state != "R":
            wait = self.contends.get(before), before in self.in_futex
            self.asleep_for_lock.pop(before, None)
            if state != "X" and (state == "D" or wait != (None, False)):
                self.asleep_for_lock[before] = wait
        self.ready.pop(before, None)
        if state == "R" and before:
            self.ready[before], self.place[before] = (time, False), number
        self.switch_to(cpu, after, time, 0)
        cpu.left = before
        cpu.idle = None if after else time

    def arrives(self, thread, time, number):
        self.moves[thread].append((time, number))
        self.place[thread] = number

    def follows_idle(self, cpu, thread, time, contends):
        """Whether the switch from the idle thread to this one, which waited for this CPU, is missing."""
        since, has_left = self.ready.get(thread, (None, False))
        # A thread on its way to sleep contends, too.
        runs = has_left or not contends or cpu.left != thread
        return since is not None and self.place[thread] == cpu.number and runs

    def switch_to(self, cpu, after, time, slack):
        if after in self.asleep_for_lock:
            self.after_lock[after, time] = self.asleep_for_lock.pop(after)
        cpu.running, cpu.since, cpu.slack, cpu.frames, cpu.firing = after, time, slack, [], None
        if after in self.parked:
            frame, since = self.parked.pop(after)
            frame.displaced += time - since
            cpu.frames.append(frame)
        self.awake.add(after)
        self.ready.pop(after, None)
        self.occupied[cpu.number].append((time, after))
        if wake := self.pending.pop(after, None):
            self.wakes[after, time] = wake

    def waking(self, cpu, thread, woken, wake):
        if woken in self.awake:
            self.early[woken] = wake
        else:
            self.pending.setdefault(woken, wake)
            self.ready.setdefault(woken, (wake.time, False))

    def wakeup(self, woken, wake):
        early = self.early.pop(woken, None)
        if woken not in self.awake:
            # Without its start, the wake-up began earlier.
            unseen = wake._replace(late=wake.by != "new" and not wake.due)
            self.pending.setdefault(woken, early._replace(ready=wake.time) if early else unseen)
            self.ready[woken] = self.ready.get(woken, (wake.time,))[0], True

    def wake(self, cpu, thread, time, by):
        recorded = self.recorded
        due = cpu.firing and cpu.firing[1]
        if cpu.frames:
            may_be_timer = True
        else:
            may_be_timer = not recorded.handlers or bool(SOFTIRQ_THREAD.match(self.comm.get(thread, "")))
        timer = cpu.firing or (not recorded.timers and may_be_timer)
        late = by != "new" and bool(timer)
        by_thread = not cpu.frames and thread != 0
        from_wait = by != "new" and (by_thread or bool(timer))
        return Wake(time, by, due, late and not due, from_wait, cpu.number)

    def occupants(self, thread, start, end, number):
        """The time for which other threads occupied the CPU for which a thread waited: initially this one, or that of its wake-up."""
        took = Counter()
        if bisect.bisect_left(self.doubtful, start) != bisect.bisect_right(self.doubtful, end):
            # The kernel omitted a switch: the thread on the CPU until then is uncertain.
            return None
        moves = self.moves[thread]
        at = bisect.bisect_left(moves, (start,))
        if number is None:
            # The wake-up chose it.
            number, at = moves[at][1], at + 1
        while True:
            until = moves[at][0] if at < len(moves) and moves[at][0] < end else end
            occupied = self.occupied[number]
            turn = max(bisect.bisect_right(occupied, start, key=lambda since: since[0]) - 1, 0)
            while turn < len(occupied) and occupied[turn][0] < until:
                after = occupied[turn + 1][0] if turn + 1 < len(occupied) else until
                took[occupied[turn][1]] += max(min(after, until) - max(occupied[turn][0], start), 0)
                turn += 1
            if until == end:
                return Counter({thread: ns for thread, ns in took.items() if thread and ns})
            start, number = until, moves[at][1]
            at += 1

    def futex(self, rest):
        """Whether a call waits for a lock; nothing if it does not wait."""
        found = FUTEX.search(rest)
        if not found:
            # The text does not distinguish `futex_wait(2)` from `futex_wake(2)` here.
            return None
        word, operation, value = (int(number, 16) for number in found.groups())
        command = operation & 0x7F
        if command in (6, 13):
            return True
        if command == 11:
            return False
        if command in (0, 9):
            owner = value & 0x3FFFFFFF
            if not (value == 2 or (value >> 31 and 1 <= owner <= 1 << 22)):
                self.conditions.add(word)
            return word not in self.conditions
        if command in (3, 4, 12) or (command in (1, 10) and value > 1):
            self.conditions.add(word)
        return None

    def knows_calls(self, thread, comm, time):
        """Whether a wait of the thread for a lock of its program would be in the recording by then."""
        recorded = self.recorded
        if KERNEL_THREAD.match(comm):
            return True
        since = self.has_calls.get(thread)
        return recorded.futexes and (recorded.calls_of is None or (since is not None and since <= time))


def update(members, one, belongs):
    (members.add if belongs else members.discard)(one)


class Cpu:
    def __init__(self):
        self.running = self.left = self.firing = self.clock = None
        self.since = self.before = self.last = self.number = self.slack = 0
        # The time of the last event that shows the idle thread, if nothing has shown another one
        # since.
        self.idle = None
        self.frames = []  # running handlers, with their beginnings

    def lost(self):
        self.running, self.frames, self.firing, self.idle = None, [], None, None

    def handler(self, actor, enters):
        """Enters or leaves a handler; returns the one that has ended."""
        if enters:
            self.frames.append(Frame(actor, self.last))
            return None
        found = [at for at, frame in enumerate(self.frames) if frame.actor == actor]
        if not found:
            return None
        ended = self.frames[found[-1]]
        ended.clean = found[-1] + 1 == len(self.frames)
        del self.frames[found[-1] :]
        if not self.frames:
            self.firing = None
        elif self.frames[-1].waits is None:
            # A handler that waits for a lock is not displaced.
            self.frames[-1].displaced += self.last - ended.entry
        return ended

    def fires(self, timer, now, time, timers, monotonic):
        if not self.clock or self.clock[0] != now:
            self.clock = (now, self.before)
        expires = timers.pop(timer, None)
        due = None
        if expires is not None:
            if monotonic and now <= time and time - now < SAME_CLOCK:
                # A timer with the slack of its thread can expire before its latest due time.
                due = (min(expires, now),) * 2
            else:
                earliest = self.frames[-1].entry if self.frames else self.clock[1]
                late = max(now - expires, 0)
                due = (max(earliest - late, 0), max(time - late, 0))
        self.firing = (timer, due)
        if self.frames and due:
            frame = self.frames[-1]
            frame.due = frame.due if frame.due and frame.due[0] <= due[0] else due


class Frame:
    """A running handler."""

    def __init__(self, actor, entry):
        self.actor, self.entry = actor, entry
        self.displaced, self.waited = 0, []
        self.waits = self.due = None
        self.clean = True

    def contends(self, lock, time, begins):
        if begins:
            self.waits = self.waits or (lock, time)
        elif self.waits and self.waits[0] == lock:
            self.waited.append(time - self.waits[1])
            self.waits = None

    def came_to(self, time):
        return Handled(time, self.displaced, self.waited, self.due, self.clean)


def sort_and_number(event, actor, rest):
    """In the format of the CSV."""
    if isinstance(actor, tuple):
        return {"irq_handler": "irq", "softirq": "softirq"}[actor[0]], int(actor[1])
    found = WHICH.search(rest)
    return "vector", int(found[1]) if found else actor


def left_as(state):
    """`R` ready, `S` asleep, `D` asleep and not to be disturbed, `X` gone."""
    if state.endswith("+") or state[0] in "R0":
        return "R"
    if "I" in state or "N" in state:
        return "S"
    return {"S": "S"}.get(state[0], "X" if state[0] in "TtXxZP" else "D")


def spins(flags):
    """Whether it may be a spinning lock; the scheduler acquires no others."""
    if flags.startswith("0x"):
        bits = int(flags, 16)
    else:
        bits = sum(LOCK_FLAGS.get(flag.strip(), 0) for flag in flags.split("|")) if flags != "0" else 0
    return bits & SLEEP == 0 and (bits == 0 or bits & SPIN != 0)
