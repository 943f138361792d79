"""Rewrites a job's figures as sentences, in the form of docs/book/src/internals/tracing.md and of the report."""

from summary import count, text_of_part as part

# The number of causes that are named.
NAMED = 3
MISSING = " began or went on by a switch from idle that the kernel did not record"
LISTED = ("R", "J", "SS", "W", "B", "I", "C")


def bounds(term):
    least, most = term["min_ns"], term["max_ns"]
    if least is None:
        return "an unknown time"
    if most is None:
        return f"at least {part(least)}"
    if least == most:
        return part(least)
    return f"at most {part(most)}" if least == 0 else f"{part(least)} to {part(most)}"


def likely(term):
    ns = term.get("likely_ns")
    return bounds(term) if ns is None else f"{bounds(term)} (likely {part(ns)})"


def repeated(times):
    return {1: "once", 2: "twice"}.get(times, f"{times} times")


def listed(parts):
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def causes(entries):
    ordered = sorted(entries, key=lambda cause: -cause["ns"])
    parts = [f"{cause['by']} for {part(cause['ns'])}" for cause in ordered[:NAMED]]
    rest, others = sum(cause["ns"] for cause in ordered[NAMED:]), len(ordered) - NAMED
    if rest:
        parts.append(f"{others} other{'' if others == 1 else 's'} for {part(rest)}")
    return listed(parts) or "somebody unseen"


def response(job, cpu_of_waker):
    who = f"{job['task_name']} on {job['name']}" if job["task"] is not None else job["name"]
    took = job["terms"]["R"]
    if took["min_ns"] is None:
        took = {"min_ns": job["terms"]["W"]["min_ns"] or 0, "max_ns": None}
    woken = "its wake-up"
    if job["waker"] is not None:
        woken += f" by {job['waker']} on CPU {cpu_of_waker}"
    of_thread = job["sort"] in ("thread", "irq-thread")
    since = {
        "timer": "when its timer was due",
        "mark": "its release by the app",
        "wake": woken,
        "new": "its creation",
        "period": "the beginning of its period",
        "unseen": "a release not seen" if of_thread else "an interrupt or request not seen",
    }[job["released_by"]]
    return f"R: {who} took {bounds(took)} from {since} to its end."


def jitter(job):
    term = job["terms"]["J"]
    if term["min_ns"] is None:
        if job["released_ns"] is not None:
            return "it may be the rest of a job that slept for a lock"
        return "nothing in the trace shows the release"
    if term["min_ns"] == term["max_ns"] == 0:
        return "it ran at once"
    parts = []
    if job["released_by"] in ("timer", "mark", "period") and job["woken_ns"] is not None:
        late = max(job["woken_ns"] - job["released_ns"][0], 0)
        if late:
            earliest, latest = job["released_ns"]
            parts.append(f"woken {'' if earliest == latest else 'at most '}{part(late)} late")
    if job["jitter_causes"]:
        took = causes(job["jitter_causes"]).replace(" for ", " took ")
        parts.append(f"released and not yet running, while {took} of the CPU")
    else:
        parts.append("released and not yet running")
    said = ", then ".join(parts)
    if job["off"]:
        what = {"interrupts": "interrupts were", "preemption": "preemption was"}[job["off"]["what"]]
        caller = job["off"]["caller"]
        place = f"+{caller:#x}" if caller >= 0 else f"+{caller & 0xFFFFFFFF:#x}"
        said += f"; {what} off for {part(job['off']['ns'])} of it, by the kernel's code at _stext{place}"
    return said


def doing(wait, depth, holder):
    """The actions of a holder during the wait."""
    shares = [share for share in wait["shares"] if share["depth"] == depth and share["holder"] == holder]
    shares.sort(key=lambda share: -share["ns"])
    preempted = [f"`{share['by']}` for {part(share['ns'])}" for share in shares if share["doing"] == "preempted"]
    verbs = {"running": "ran", "asleep": "slept", "unseen": "was not seen"}
    clauses = [f"{verbs[share['doing']]} for {part(share['ns'])}" for share in shares if share["doing"] in verbs]
    if preempted:
        clauses.insert(0, f"was preempted by {listed(preempted)}")
    return f", which {listed(clauses)}" if clauses else ""


def blocking(wait):
    on = {"futex": "futex", "lock": "kernel lock"}.get(wait["on"])
    on = f"{on} {wait['address']}" if on else "the kernel (uninterruptible sleep)"
    said = f"{'blocked' if wait['slept'] else 'spinning'} on {on}"
    if not wait["owners"]:
        return said + (f", until `{wait['waker']}` woke it" if wait["waker"] is not None else "")
    holder = wait["owners"][0]
    said += f" held by `{holder}`"
    holders = []
    for share in wait["shares"]:
        if share["holder"] is not None and (share["depth"], share["holder"]) not in holders:
            holders.append((share["depth"], share["holder"]))
    # At the same depth, the first holder comes first, and the others follow in the order of their
    # first shares.
    holders.sort(key=lambda at: (at[0], at[1] != holder))
    depth = 0
    for index, (at, other) in enumerate(holders):
        if at > depth:
            below = sum(share["ns"] for share in wait["shares"] if share["depth"] >= at)
            said += f"; it waited {part(below)} for `{other}`"
            depth = at
        elif index:
            said += f"; then by `{other}`"
        said += doing(wait, at, other)
    back = [share for share in wait["shares"] if share["holder"] is None]
    if total := sum(share["ns"] for share in back):
        said += f"; {part(total)} to resume"
    kept = sorted((share for share in back if share["doing"] == "preempted"), key=lambda share: -share["ns"])
    if kept:
        said += ", kept from the CPU by " + listed([f"`{share['by']}` for {part(share['ns'])}" for share in kept])
    return said


def waits(job):
    if not job["blockings"]:
        term = job["terms"]["B"]
        known = term["max_ns"] is not None and term["min_ns"] == term["max_ns"]
        return "it waited for no lock" if known else "waits for locks were not all recorded"
    # Of equally long waits, the last one.
    longest = max(reversed(job["blockings"]), key=lambda wait: wait["end_ns"] - wait["start_ns"])
    number = len(job["blockings"]) + job["blockings_left_out"]
    if number == 1:
        return blocking(longest)
    took = part(longest["end_ns"] - longest["start_ns"])
    return f"blocked {repeated(number)}, the longest for {took}: {blocking(longest)}"


def deadline(job):
    reserved, times = job["reservation"], job["throttles"]
    throttled = None
    if times:
        runtime = "its runtime"
        if reserved:
            runtime += f" of {part(reserved['runtime_ns'])} in {part(reserved['period_ns'])}"
        throttled = f"throttled {repeated(times)} for {part(job['throttled_ns'])} in all, as it had used up {runtime}"
    if not reserved:
        return throttled
    by, term = f"deadline of {part(reserved['deadline_ns'])}", job["terms"]["R"]
    if term["min_ns"] is None:
        met = f"whether it met its {by} is not known"
    elif job["missed"]:
        exact = term["min_ns"] == term["max_ns"]
        met = f"missed its {by} by {'' if exact else 'at least '}{part(term['min_ns'] - reserved['deadline_ns'])}"
    elif job["missed"] is False:
        met = f"met its {by}"
    else:
        met = f"whether it met its {by} is not certain"
    return "; ".join(filter(None, (met, throttled)))


def sentences(job, cpu_of_waker):
    """All of a job that has ended and has no flaw."""
    terms = job["terms"]
    of = f"of {bounds(terms['W'])} W" if terms["J"]["min_ns"] is None else f"of {bounds(terms['R'])} R"
    said = [f"D: {text}." for text in [deadline(job)] if text]
    said.append(response(job, cpu_of_waker))
    said.append(f"J: {bounds(terms['J'])} {of}: {jitter(job)}.")
    moves = f", displaced by threads {repeated(job['preemptions'])}" if job["preemptions"] else ""
    entering, leaving = bounds(terms["SS_entry"]), bounds(terms["SS_exit"])
    said.append(f"SS: {likely(terms['SS'])} {of}: in the scheduler, {entering} entering and {leaving} leaving{moves}.")
    unless = ", unless it slept for a lock then and went on" if terms["W"]["max_ns"] is None else ""
    if unless and terms["J"]["min_ns"] is None and job["released_ns"] is not None:
        unless = ", unless it is part of a job that slept for a lock"
    moved = f", moved {repeated(job['migrations'])}" if job["migrations"] else ""
    first, last = job["first_cpu"], job["last_cpu"]
    said.append(f"W: {bounds(terms['W'])} {of}: from its first run on CPU {first} to its end on CPU {last}{moved}{unless}.")
    said.append(f"B: {bounds(terms['B'])} {of}: {waits(job)}.")
    interference = terms["I"]
    if interference["min_ns"] == interference["max_ns"] == 0:
        displaced = "not displaced"
    elif interference["min_ns"] is None:
        displaced = "nothing is known to have displaced it"
    else:
        displaced = f"displaced by {causes(job['interference_causes'])}"
    said.append(f"I: {bounds(interference)} {of}: {displaced}.")
    asleep = f", {part(job['suspended_ns'])} of it in voluntary sleep" if job["suspended_ns"] else ""
    nmi = f", {part(job['nmi_ns'])} of it and of I in non-maskable interrupts" if job["nmi_ns"] else ""
    said.append(f"C: {likely(terms['C'])} {of}: executing{asleep}{nmi}.")
    return said


def assumptions(jobs):
    """The text below a table on the assumptions about these jobs, which have no flaw."""
    said = []
    both = [job["terms"] for job in jobs if job["terms"]["SS"].get("likely_ns") is not None]
    both = [terms for terms in both if terms["C"].get("likely_ns") is not None]
    if both:
        greatest = [part(max(terms[term]["likely_ns"] for terms in both)) for term in ("SS", "C")]
        number = f"{count(len(both))} job{'' if len(both) == 1 else 's'}"
        said.append(
            f"Likely, not certain: SS at most {greatest[0]} and C at most {greatest[1]} in {number}, "
            "if the scheduler took as long as where it was observed."
        )
    if all(job["missing_switches"] is not None for job in jobs):
        missing = sum(1 for job in jobs if job["missing_switches"])
        if missing:
            said.append(
                f"{count(missing)} job{'' if missing == 1 else 's'}{MISSING}: it lies between the last event of the idle "
                "thread and the first of the job, which bound J, W, SS and C."
            )
    ended = sum(1 for job in jobs if job["ended_on"] and job["ended_on"][1].startswith("likely"))
    roles = [wait["role"] for job in jobs for wait in job["blockings"] if wait["role"]]
    locks, doubtful = roles.count("likely lock"), sum("condition" in role for role in roles)
    if ended:
        said.append(
            f"{count(ended)} job{'' if ended == 1 else 's'} ended in a wait on a futex that is taken for a condition or a "
            "semaphore; if it is a lock, use --futex block."
        )
    if locks:
        are = "wait on a futex whose word is that of a contended mutex is" if locks == 1 else (
            "waits on a futex whose word is that of a contended mutex are")
        said.append(f"{count(locks)} {are} taken for blocking; if it is none, use --futex suspend.")
    if doubtful:
        are = "wait on a futex that looks like a condition or a semaphore is" if doubtful == 1 else (
            "waits on a futex that looks like a condition or a semaphore are")
        said.append(f"{count(doubtful)} {are} taken for blocking; if the task waits for work there, use --futex auto.")
    return said
