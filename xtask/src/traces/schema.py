"""Checks the output of `punctual trace report --perfetto` against Perfetto's own schema and the text of `trace-cmd report -t`.

usage: schema.py TRACE REPORT

The schema is that of the package `perfetto`, which has no trace processor: that is downloaded on first use. This script checks for
the errors that the processor would count: unknown fields, undeclared tracks, ends without beginnings, switches that do not follow
each other. The scheduling events must equal those of `trace-cmd`.
"""

import re
import sys
from collections import Counter, defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

SWITCH = re.compile(
    r"-\d+\s+\[(\d+)\]\s*(?:\S+\s+)?(?:(\d+)\.)?(\d+):\s+sched_switch:\s+.* prev_pid=(\d+) .* next_pid=(\d+) "
)


def unknown_fields(message, path="trace"):
    for field in UnknownFieldSet(message):
        yield f"{path}: field {field.field_number}"
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for inner in [value] if hasattr(value, "ListFields") else value:
            yield from unknown_fields(inner, f"{path}.{descriptor.name}")


def check(trace):
    """The errors in the events of tracks, and the number of events of each kind."""
    wrong, count = [], Counter()
    declared, parents, threads = set(), {}, {}
    begun, ended, nesting = Counter(), Counter(), defaultdict(int)
    events = []
    for packet in trace.packet:
        kind = packet.WhichOneof("data")
        count[kind] += 1
        if kind == "track_descriptor":
            descriptor = packet.track_descriptor
            if descriptor.uuid in declared:
                wrong.append(f"track {descriptor.uuid} is declared twice")
            declared.add(descriptor.uuid)
            if descriptor.HasField("parent_uuid"):
                parents[descriptor.uuid] = descriptor.parent_uuid
            if descriptor.HasField("thread") and not (descriptor.thread.pid and descriptor.thread.tid):
                wrong.append(f"track {descriptor.uuid} is a thread's without numbers")
        elif kind == "track_event":
            if not packet.trusted_packet_sequence_id:
                wrong.append(f"the event at {packet.timestamp} has no sequence")
            if packet.track_event.track_uuid not in declared:
                wrong.append(f"track {packet.track_event.track_uuid} of the event at {packet.timestamp} is not declared before")
            events.append((packet.timestamp, packet.track_event))
        elif kind == "process_tree":
            processes = {process.pid for process in packet.process_tree.processes}
            for thread in packet.process_tree.threads:
                if thread.tgid not in processes or threads.setdefault(thread.tid, thread.tgid) != thread.tgid:
                    count["threads of several processes"] += 1
    wrong += [f"parent {parent} is not declared" for parent in parents.values() if parent not in declared]
    # The processor sorts by time, stably.
    events.sort(key=lambda event: event[0])
    for time, event in events:
        track = event.track_uuid
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            nesting[track] += 1
            count["slices"] += 1
            if not event.name:
                wrong.append(f"a slice at {time} has no name")
        elif event.type == TrackEvent.TYPE_SLICE_END:
            nesting[track] -= 1
            if nesting[track] < 0:
                wrong.append(f"a slice of track {track} ends at {time} and has not begun")
                nesting[track] = 0
        elif event.type != TrackEvent.TYPE_INSTANT:
            wrong.append(f"an event at {time} is of type {event.type}")
    if begun != ended:
        wrong.append(f"flows that do not end: {len(begun - ended)}, that do not begin: {len(ended - begun)}")
    count["flows"] = len(begun)
    # Threads, handlers and calls may continue beyond the end; jobs and their terms do not.
    count["slices that do not end"] = sum(nesting.values())
    return wrong, count


def switches(trace):
    found, last = [], {}
    for packet in trace.packet:
        if not packet.HasField("ftrace_events"):
            continue
        bundle = packet.ftrace_events
        for event in bundle.event:
            if event.HasField("sched_switch"):
                switch = event.sched_switch
                found.append((event.timestamp, bundle.cpu, switch.prev_pid, switch.next_pid))
                last[bundle.cpu] = switch.next_pid
    return found


def printed(path):
    found = []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := SWITCH.search(line):
                cpu, seconds, ns, before, after = (int(number or 0) for number in match.groups())
                found.append((seconds * 10**9 + ns, cpu, before, after))
    return found


def main():
    trace = Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    wrong, count = check(trace)
    wrong += sorted(set(unknown_fields(trace)))
    ours, theirs = sorted(switches(trace)), sorted(printed(sys.argv[2]))
    if ours != theirs:
        differing = (set(ours) ^ set(theirs)) or {"their number"}
        wrong.append(f"{len(ours)} switches, and trace-cmd prints {len(theirs)}; different: {sorted(map(str, differing))[:3]}")
    for what in wrong[:20]:
        print(what)
    print(f"Perfetto: {len(ours)} switches; {dict(count)}; wrong: {len(wrong)}")
    sys.exit(1 if wrong else 0)


main()
