"""Compares bounds with those of pyCPA: compare.py SETS.json, with pyCPA on PYTHONPATH.

pyCPA counts a response from the instant at which the job becomes ready; the jitter of the task itself is added here. Where jobs may be
late by more than what is left of a period it is more pessimistic, so the file has no bounds of such tasks.
"""

import json
import sys

from pycpa import analysis, model, schedulers


def bounds(tasks):
    """The bounds of a set, tasks with the highest level first."""
    system = model.System()
    resource = system.bind_resource(model.Resource("cpu", schedulers.SPPScheduler()))
    bound = []
    for place, task in enumerate(tasks):
        it = model.Task(f"t{place}", wcet=task["execution"], bcet=task["execution"], scheduling_parameter=place)
        resource.bind_task(it)
        it.in_event_model = model.PJdEventModel(P=task["period"], J=task["jitter"])
        bound.append(it)
    results = analysis.analyze_system(system)
    return [results[it].wcrt for it in bound]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        sets = json.load(file)
    compared, differing, given_up = 0, 0, 0
    for number, tasks in enumerate(sets, 1):
        try:
            found = bounds(tasks)
        except analysis.NotSchedulableException:
            # It ends its search after a number of steps, near full utilization.
            given_up += 1
            continue
        for task, theirs in zip(tasks, found):
            if task["bound"] is None:
                continue
            compared += 1
            if task["bound"] != theirs + task["jitter"]:
                differing += 1
                print(f"set {number}: {task} is {theirs + task['jitter']} by pyCPA: {tasks}")
    print(f"{len(sets)} sets, {given_up} given up by pyCPA: {compared} bounds compared, {differing} differ")
    return 1 if differing or not compared else 0


sys.exit(main())
