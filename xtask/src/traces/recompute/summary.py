"""Recomputes the tables of a report for all jobs of a task."""

import re
from collections import defaultdict

TERMS = ("r", "j", "ss", "w", "b", "i", "c")
# From this many ns on, quantiles are those of the last bucket.
HIGHEST = 100_000_000_000


def significant(value):
    """Three significant digits, or all digits before the point; at most three decimals."""
    size = abs(value)
    limits = ((0.9995, 3), (9.995, 2), (99.95, 1))
    decimals = 0 if size == 0 else next((decimals for limit, decimals in limits if size < limit), 0)
    return f"{size:,.{decimals}f}".replace(",", " ")


def micros(ns):
    return significant(ns / 1e3)


def count(number):
    return f"{number:,}".replace(",", " ")


def text_of_part(ns):
    """A time with its unit, in the format of sentences."""
    if ns < 1_000:
        return f"{ns} ns"
    if ns < 9_950:
        return f"{(ns + 50) // 1_000}.{(ns + 50) % 1_000 // 100} µs"
    unit, size = ("µs", 10**3) if ns < 9_999_500 else ("ms", 10**6) if ns < 9_999_500_000 else ("s", 10**9)
    return f"{count(ns // size + (ns % size >= size // 2))} {unit}"


def nanos(ns):
    """The same with three significant digits."""
    chosen = ns / 0.9995
    unit, size = ("ns", 1) if chosen < 1e3 else ("µs", 1e3) if chosen < 1e6 else ("ms", 1e6) if chosen < 1e9 else ("s", 1e9)
    return f"{significant(ns / size)} {unit}"


def quantile(values, parts_per_thousand):
    """The quantile in thousandths, with the precision of a histogram with buckets of at most 1 %."""
    at = max(1, -(-len(values) * parts_per_thousand // 1000))
    value = values[at - 1]
    width = max(0, value.bit_length() - 8)
    return min(((value >> width) + 1 << width) - 1, values[-1])


def table(bounds):
    """The cells of a term of these jobs."""
    counted = sorted(least if most is None else most for least, most in bounds if least is not None)
    if not counted:
        jobs = len(bounds)
        return ["–"] * 4 + ["0", "unknown" if jobs else ""]
    exact = sum(1 for least, most in bounds if least is not None and least == most)
    lower = sum(1 for least, most in bounds if least is not None and most is None)
    kinds = ((exact, "exact"), (len(counted) - exact - lower, "bounded"), (lower, "at least"), (len(bounds) - len(counted), "unknown"))
    sign = {(False, False): "", (True, False): "≤ ", (False, True): "≥ "}.get((kinds[1][0] > 0, lower > 0), "≈ ")
    mean = sum(counted) / len(counted)
    times = (counted[-1], quantile(counted, 999), quantile(counted, 500), int(mean + 0.5))
    known = ", ".join(kind if some == len(bounds) else f"{count(some)} {kind}" for some, kind in kinds if some)
    return [sign + micros(time) for time in times] + [count(len(counted)), known]


def sections(text):
    """The heading and the rows of each task's table."""
    found, paragraphs = [], re.split(r"\n\n", text)
    for paragraph in paragraphs:
        lines = paragraph.splitlines()
        heads = [at for at, line in enumerate(lines) if re.match(r"  term +max µs +p99\.9 +p50 +mean +jobs +known", line)]
        if not heads:
            continue
        head = " ".join(line.strip() for line in lines[: heads[0]])
        rows = {}
        for line in lines[heads[0] + 1 : heads[0] + 1 + len(TERMS)]:
            letter, _, *cells = re.split(r" {2,}", re.sub(r"^ *SS ", "SS  ", line).strip())
            rows[letter.lower()] = cells if len(cells) == 6 else cells + [""]
        found.append((head, rows))
    return found


# The names of the tasks of apps by number, and the numbers of tasks with unique names.
task_names, task_numbers = {}, {}


def know_tasks(rows):
    """An app that is already running names its tasks within a second, so the last name is that of the table."""
    task_names.update((row["task"], row["task_name"]) for row in rows if row["task"])
    task_numbers.update((name, number) for number, name in task_names.items())


def choice(task):
    """The option that selects a task on the command line."""
    return task_names[task[0][1]] if isinstance(task[0], tuple) else str(task[0])


def task_of(row):
    """The task of a job. A thread may change its name; threads that reused a number are not distinguished."""
    if row["task"]:
        return ("task", row["task"]), False
    if row["sort"] in ("thread", "irq-thread"):
        return int(row["id"]), row["priority"] == "0"
    return row["name"], False


def task_in(head):
    """The same of the heading of a table."""
    name, rest = re.match(r"(.*?)((?:, (?:nice|priority|SCHED).*)?, [\d ]+ jobs?\b.*)$", head).groups()
    if not rest.startswith((", nice", ", priority", ", SCHED")):
        return name, False
    if number := re.search(r" \(task (\d+)\)$", name):
        return ("task", number[1]), False
    if name in task_numbers:
        return ("task", task_numbers[name]), False
    number = re.search(r"/(\d+)$", name)
    return (int(number[1]), rest.startswith(", nice")) if number else (name, False)


def check(rows, text, bounds_of):
    """Compares all tables with the sums of the jobs; returns the differences, and the number of equal cells."""
    jobs, flawed = defaultdict(list), defaultdict(int)
    for row in rows:
        if row["flaw"]:
            flawed[task_of(row)] += 1
        else:
            jobs[task_of(row)].append(row)
    tables = defaultdict(list)
    for head, cells in sections(text):
        tables[task_in(head)].append(cells)
    wrong, equal, unmatched = [], 0, []
    for name, members in jobs.items():
        wanted = {term: table([bounds_of(row, term) for row in members]) for term in TERMS}
        same = tables.get(name, [])
        if len(same) != 1:
            unmatched.append(name)
            continue
        for term in TERMS:
            for at, (ours, theirs) in enumerate(zip(same[0][term], wanted[term])):
                if ours == theirs:
                    equal += 1
                else:
                    wrong.append(f"{members[0]['name']}/{name[0]}: {term.upper()}, column {at + 1}: {ours}, recomputed {theirs}")
    return wrong, equal, unmatched


def key_figures(rows, bounds_of):
    """The figures of these jobs at the head of the page: value and detail of each, without detail if it is not compared."""
    found, flawed = {}, sum(1 for row in rows if row["flaw"])
    jobs = [row for row in rows if not row["flaw"]]
    tasks = defaultdict(list)
    for row in jobs:
        tasks[task_of(row)].append(row)
    for what, term in (("response", "r"), ("jitter", "j"), ("blocking", "b"), ("interference", "i")):
        bounds = {task: [bounds_of(row, term) for row in members] for task, members in tasks.items()}
        unknown = sum(least is None for members in bounds.values() for least, _ in members)
        of_rest = f"unknown of {count(unknown)} job{'' if unknown == 1 else 's'}" if unknown else ""
        greatest = {}
        for task, members in bounds.items():
            known = [least if most is None else most for least, most in members if least is not None]
            if known:
                greatest[task] = max(known)
        most = max(greatest.values(), default=None)
        if most is None:
            value = ("unknown", "of every job") if unknown else ("none", "of no task")
        elif most:
            best = [task for task, value in greatest.items() if value == most]
            sign = re.match(r"[≤≥≈] |", table(bounds[best[0]])[0])[0]
            value = (sign + nanos(most), None)
        else:
            value = ("none seen", of_rest) if unknown else ("none", "of no task")
        found[f"Longest {what}"] = value
    found["Flawed jobs"] = (count(flawed), f"of {count(len(rows))}, left out")
    return found
