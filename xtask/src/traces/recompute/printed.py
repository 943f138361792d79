"""Compares the sentences of a report, on the terminal and on the page, with those recomputed from the figures."""

import html
import re

import words

SENTENCE = re.compile(r"^    (D|R|J|SS|W|B|I|C) +(\S.*)$")
CALLS = re.compile(r" \d[\d ]* system calls? in .*$")
TERMS = ("R", "J", "SS", "W", "B", "I", "C")


class Names:
    """Makes texts comparable that use different names of a thread."""

    def __init__(self, comms):
        self.comms = {str(thread): names for thread, names in comms.items()}

    def without(self, text):
        text = text.replace("`", "")
        out, at = "", 0
        for found in re.finditer(r"/(\d+)", text):
            before = out + text[at : found.start()]
            names = self.comms.get(found[1], ())
            name = max((name for name in names if before.endswith(name)), key=len, default="")
            out = before[: len(before) - len(name)] + "@" + found[1]
            at = found.end()
        return out + text[at:]

    def same(self, printed, wanted):
        printed, wanted = self.without(printed), self.without(wanted)
        # If the CPU of its wake-up is unknown, any CPU is accepted.
        return re.fullmatch(re.escape(wanted).replace("CPU\\ None", r"CPU\ \d+"), printed) is not None


def explained(text):
    """For each task the lines of its heading, the sentences below its table, and those of its longest jobs, with their end times."""
    head, notes, jobs = None, [], []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        tables = [at for at, line in enumerate(lines) if line.startswith("  term ")]
        if tables:
            if head is not None:
                yield head, notes, jobs
            head = " ".join(line.strip() for line in lines[: tables[0]])
            notes, jobs = joined(lines[tables[0] + 8 :]), []
        elif head is not None and (found := re.match(r"  (?:\d+\. )?longest job, ended at (\S+) ", paragraph)):
            said = []
            for line in lines[1:]:
                if sentence := SENTENCE.match(line):
                    said.append(f"{sentence[1]}: {sentence[2]}")
                elif said:
                    said[-1] += " " + line.strip()
            jobs.append((found[1], [CALLS.sub("", sentence) for sentence in said]))
    if head is not None:
        yield head, notes, jobs


def joined(lines):
    """Wrapped sentences, each of which ends with a full stop."""
    said = []
    for line in lines:
        if not line.startswith("  "):
            break
        if said and not said[-1].endswith("."):
            said[-1] += " " + line.strip()
        else:
            said.append(line.strip())
    return said


def severity(job):
    for term in ("R", "W"):
        bounds = job["terms"][term]
        if bounds["min_ns"] is not None:
            return bounds["max_ns"] if bounds["max_ns"] is not None else bounds["min_ns"]
    return 0


def clock(ns):
    return f"{ns // 10**9}.{ns % 10**9 // 1000:06}"


def check_terminal(text, objects_of, task_in, names, cpu_of_waker):
    """The errors in the sentences of the terminal, and the number of correct ones."""
    wrong, equal = [], 0
    for head, notes, jobs in explained(text):
        objects = objects_of.get(task_in(head))
        if objects is None:
            continue
        # Of equally long ones, the one that ended first.
        longest = sorted(objects, key=lambda job: -severity(job))[: len(jobs)]
        for (ended, said), job in zip(jobs, longest):
            wanted = words.sentences(job, cpu_of_waker(job))
            if ended != clock(job["end_ns"]):
                wrong.append(f"{head}: a longest job ended at {ended}, and by its figures at {clock(job['end_ns'])}")
                continue
            equal += yield_differences(said, wanted, names, f"{job['name']} at {job['start_ns']}", wrong)
        if any(job["missing_switches"] is None for job in objects):
            # The script does not follow marked jobs.
            notes = [note for note in notes if words.MISSING not in note]
        equal += yield_differences(notes, words.assumptions(objects), names, head, wrong)
    return wrong, equal


def yield_differences(said, wanted, names, label, wrong):
    equal = 0
    if len(said) != len(wanted):
        wrong.append(f"{label}: {len(said)} sentences, recomputed {len(wanted)}: {said} {wanted}")
    for ours, theirs in zip(said, wanted):
        if names.same(ours, theirs):
            equal += 1
        else:
            wrong.append(f"{label}: “{ours}”, recomputed “{theirs}”")
    return equal


def plain(markup):
    text = html.unescape(re.sub(r"<[^>]*>", "", markup))
    # No-break spaces.
    return re.sub(r"[\u00a0\u202f\u2007]", " ", text).strip()


def check_page(page, objects, objects_of, task_of, cells_of, figures_of, names, cpu_of_waker):
    """The same of the page: sentences, tables, the figures at its head and the greatest values of its charts."""
    wrong, equal = [], 0
    by_number = {job["number"]: job for job in objects}

    def same(what, found, wanted):
        nonlocal equal
        if found == wanted:
            equal += 1
        else:
            wrong.append(f"page: {what}: {found}, recomputed {wanted}")

    head = page.split("<section", 1)[0]
    figures = re.findall(r"<li><span>(.*?)</span><strong[^>]*>(.*?)</strong><em>(.*?)</em>", head)
    found = {plain(what): (plain(value), plain(detail)) for what, value, detail in figures}
    for what, (value, detail) in figures_of.items():
        same(what, found.get(what, ("", ""))[0], value)
        if detail is not None:
            same(f"{what}, detail", names.without(found.get(what, ("", ""))[1]), names.without(detail))
    tasks = {}
    for section in re.split(r'(?=<section class="task")', page)[1:]:
        place = re.match(r'<section class="task" id="(t\d+)"', section)[1]
        jobs = re.findall(r'<div class="job" id="[^"]*"[^>]*><p class="which">(.*?)</p>(.*?)</dl></div>', section, re.S)
        task = None
        for which, body in jobs:
            job = by_number[int(re.search(r"job (\d+)$", plain(which))[1])]
            task = task_of(job)
            said = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", body.rsplit('<dl class="words">', 1)[1], re.S)
            said = [f"{plain(letter)}: {plain(text)}" if plain(letter) else plain(text) for letter, text in said]
            said = [text for text in said if not CALLS.search(" " + text)]
            equal += yield_differences(said, words.sentences(job, cpu_of_waker(job)), names, f"page, job {job['number']}", wrong)
        if task not in objects_of:
            continue
        tasks[place] = cells = cells_of(task)
        rows = re.findall(r"<tr>(.*?)</tr>", section.split('<table class="terms">', 1)[1].split("</table>", 1)[0], re.S)[1:]
        for term, row in zip(TERMS, rows):
            texts = [plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
            same(f"{place}, {term}", texts, cells[term.lower()])
        counts = {term: len([job for job in objects_of[task] if job["terms"][term]["min_ns"] is not None]) for term in TERMS}
        for term, chart in re.findall(r'<figure class="pair" data-term="(\w+)">(.*?)</figure>', section, re.S):
            bars = sum(map(int, re.findall(r'data-n="(\d+)"', chart)))
            same(f"{place}, bars of {term}", bars, counts[term])
            greatest = re.findall(r'<svg class="series" data-max="(\d+)"', chart)
            if term != "SS" and greatest:
                known = [job["terms"][term] for job in objects_of[task] if job["terms"][term]["min_ns"] is not None]
                most = max(bounds["max_ns"] if bounds["max_ns"] is not None else bounds["min_ns"] for bounds in known)
                same(f"{place}, chart of {term}", greatest, [str(most)])
    overview = page.split('<table class="longest">', 1)[-1].split("</table>", 1)[0]
    for place, row in re.findall(r'<tr><th[^>]*><a href="#(t\d+)">.*?</th>(.*?)</tr>', overview, re.S):
        if place in tasks:
            texts = [plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)][2:9]
            same(f"all tasks, {place}", texts, [tasks[place][term.lower()][0] for term in TERMS])
    return wrong, equal
