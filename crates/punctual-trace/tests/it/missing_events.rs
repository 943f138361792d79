//! Recordings without some kinds of events: statements about the rest are true.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Machine, Random, Style, Truth};
use crate::random::inputs;
use crate::support::{IDLE, Script, jobs, of, task};
use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping, Uninterruptible};
use punctual_trace::event::{Event, Kind, Task};
use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, FutexWaits, Job};
use punctual_trace::names::Names;
use punctual_trace::recorded::{Recorded, Source};
use punctual_trace_report::explain;
use punctual_trace_report::export::json;

const HIGH: Task = task(7, 10);
const LOW: Task = task(9, 30);

/// Kinds of events by their kernel names.
const KINDS: [&str; 20] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_migrate_task",
    "sched:sched_pi_setprio",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq_vectors:local_timer_entry",
    "irq_vectors:local_timer_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "timer:hrtimer_start",
    "timer:hrtimer_expire_entry",
    "timer:hrtimer_expire_exit",
    "lock:contention_begin",
    "lock:contention_end",
    "syscalls:sys_enter_futex",
    "syscalls:sys_exit_futex",
    "punctual:schedule_enter",
    "punctual:schedule_exit",
];

fn name(kind: Kind) -> &'static str {
    let index = match kind {
        Kind::Switch { .. } => 0,
        Kind::Waking { .. } => 1,
        Kind::Wakeup { .. } => 2,
        Kind::Migrate { .. } => 3,
        Kind::Inherit { .. } => 4,
        Kind::IrqEntry { .. } => 5,
        Kind::IrqExit { .. } => 6,
        Kind::VectorEntry { .. } => 7,
        Kind::VectorExit { .. } => 8,
        Kind::SoftirqEntry { .. } => 9,
        Kind::SoftirqExit { .. } => 10,
        Kind::TimerStart { .. } => 11,
        Kind::TimerExpire { .. } => 12,
        Kind::TimerExpired { .. } => 13,
        Kind::ContentionBegin { .. } => 14,
        Kind::ContentionEnd { .. } => 15,
        Kind::FutexEnter { .. } => 16,
        Kind::FutexExit { .. } => 17,
        Kind::ScheduleEnter => 18,
        Kind::ScheduleExit => 19,
        _ => return "",
    };
    KINDS[index]
}

/// Returns the recording without these kinds of events, and its declaration.
fn without(events: &[Event], missing: &[&str]) -> (Vec<Event>, Recorded) {
    let there: Vec<_> = KINDS.into_iter().filter(|kind| !missing.contains(kind)).collect();
    let events = events.iter().filter(|event| !missing.contains(&name(event.kind))).copied().collect();
    (events, Recorded::declared(&there.join("\n")))
}

/// Checks that the job is the true one or a part of it, and that no statement about it is wrong.
fn check(truth: &Truth, job: &Job, locks: bool) {
    assert_eq!(job.check(), Ok(()));
    let allows = |bounds: Bounds, ns: u64, term: &str| {
        assert!(bounds.allows(ns), "{term}: {bounds:?} does not allow {ns}");
    };
    allows(job.response, truth.end - truth.release, "R");
    allows(job.jitter, truth.start - truth.release, "J");
    allows(job.window, truth.end - truth.start, "W");
    allows(job.overhead, truth.overhead, "SS");
    allows(job.execution, truth.execution, "C");
    allows(job.blocking, truth.blocking, "B");
    let least = |bounds: Bounds| bounds.lo().unwrap_or(0);
    let sum = Bounds::AtLeast(least(job.blocking) + least(job.interference));
    allows(sum, truth.blocking + truth.interference, "B + I");
    match (job.interference, locks) {
        // Displacement of the thread on its way into a wait for a lock is indistinguishable from
        // earlier displacement.
        (Bounds::AtLeast(lo), false) => allows(Bounds::AtLeast(lo), truth.interference + truth.blocking, "I"),
        (interference, _) => allows(interference, truth.interference, "I"),
    }
}

/// Returns the number of schedules.
fn seeds() -> u64 {
    inputs(10)
}

/// Returns the number of complete jobs, and of exact values by term.
fn survey(missing: &[&str]) -> (u64, BTreeMap<&'static str, u64>) {
    survey_from(0, missing)
}

/// The same for a recording that starts after some tenths of the events.
fn survey_from(tenths: usize, missing: &[&str]) -> (u64, BTreeMap<&'static str, u64>) {
    let (mut complete, mut exact) = (0, BTreeMap::new());
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let style = Style {
            cpus: random.range(1, 2) as usize,
            threads: random.range(2, 6) as usize,
            locks: random.range(0, 3) as usize,
            edges: random.once_in(2),
            interrupts: true,
            timers: random.once_in(2),
        };
        let mut machine = Machine::new(seed, style);
        machine.run(2_000);
        let first = machine.events.len() * tenths / 10;
        let (events, recorded) = without(&machine.events[first..], missing);
        let locks = recorded.has(Source::Futexes) && recorded.has(Source::Contention);
        let config = Config { monotonic: true, recorded, ..Config::default() };
        let mut decomposer = Decomposer::new(config);
        let mut found = Vec::new();
        events.iter().for_each(|event| decomposer.feed(event, &mut |job| found.push(job.clone())));
        // The first job of a thread counts as a whole one, and may be the rest of a job.
        let mut seen = BTreeSet::new();
        found.retain(|job| !seen.insert(job.actor) || tenths == 0);
        for job in found.iter().filter(|job| job.complete()) {
            let Actor::Thread(tid) = job.actor else { panic!("only threads are wanted") };
            let around =
                |truth: &&Truth| truth.tid == tid && truth.start <= job.start && job.end <= truth.end;
            // The model notes a job when it ends.
            let Some(truth) = machine.truths.iter().find(around) else {
                let unended = machine.truths.iter().rfind(|truth| truth.tid == tid);
                assert!(
                    unended.is_none_or(|last| last.end <= job.start),
                    "seed {seed}: no such job: {job:#?}"
                );
                continue;
            };
            std::panic::catch_unwind(|| check(truth, job, locks)).unwrap_or_else(|_| {
                panic!("seed {seed} {style:?} without {missing:?}\n{truth:#?}\n{job:#?}")
            });
            complete += 1;
            for (term, bounds) in [
                ("R", job.response),
                ("J", job.jitter),
                ("W", job.window),
                ("B", job.blocking),
                ("I", job.interference),
                ("C", job.execution),
            ] {
                *exact.entry(term).or_default() += u64::from(matches!(bounds, Bounds::Exact(_)));
            }
        }
    }
    (complete, exact)
}

#[test]
fn leaves_terms_of_missing_events_unknown_or_wider() {
    let (all, exact) = survey(&[]);
    assert!(
        all > 26 * seeds() && exact["R"] == all && exact["B"] == all && exact["I"] == all,
        "{all} {exact:?}"
    );
    for kind in KINDS {
        let (complete, exact) = survey(&[kind]);
        // The terms that require it are never exact.
        let unknown: &[&str] = match kind {
            "sched:sched_switch" => {
                assert_eq!(complete, 0);
                continue;
            }
            _ if kind.starts_with("irq") => &["I"],
            _ if kind.starts_with("lock") => &["B"],
            _ if kind.starts_with("syscalls") => &["R", "W", "B", "I", "C"],
            _ => &[],
        };
        assert!(complete > all / 2, "without {kind} {complete} of {all} jobs are left");
        for term in unknown {
            assert_eq!(exact[term], 0, "{term} without {kind}");
        }
        // A timer's expiry reveals the release without the wake-up, and the wake-up without the
        // timer reveals that of other jobs.
        if kind.starts_with("timer") || kind == "sched:sched_waking" {
            assert!(exact["J"] < complete, "J without {kind}");
        }
    }
}

#[test]
fn stays_true_for_recordings_that_start_later() {
    for tenths in 1..9 {
        let (complete, exact) = survey_from(tenths, &[]);
        assert!(complete > 2 * seeds() && exact["R"] > complete / 2, "{tenths}: {complete} {exact:?}");
    }
}

#[test]
fn stays_true_without_several_sources() {
    let sched = ["sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup"];
    let others =
        |retained: &[&str]| KINDS.into_iter().filter(|kind| !retained.contains(kind)).collect::<Vec<_>>();
    for retained in [&sched[..], &sched[..2], &sched[..1], &["sched:sched_switch", "sched:sched_wakeup"]] {
        let (complete, exact) = survey(&others(retained));
        assert!(complete > 20 * seeds(), "with {retained:?} {complete} jobs are left");
        assert_eq!((exact["R"], exact["B"], exact["C"]), (0, 0, 0), "with {retained:?}");
    }
}

/// Thread 7 is woken by a timer, waits 2.5 ms for a user-space mutex and continues.
fn waiting() -> Script {
    let mut s = Script::new();
    let us = 1_000;
    for job in 1..4 {
        let t = job * 10_000 * us;
        s.waking(t, 0, HIGH, 0).wakeup(t + us, 0, HIGH, 0).switch(t + 5 * us, 0, Runnable, HIGH);
        s.at(t + 20 * us, 0, Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 });
        s.switch(t + 25 * us, 0, Sleeping, LOW);
        s.waking(t + 2_525 * us, 0, HIGH, 0).wakeup(t + 2_526 * us, 0, HIGH, 0);
        s.switch(t + 2_530 * us, 0, Runnable, HIGH);
        s.at(t + 2_535 * us, 0, Kind::FutexExit { result: 0 });
        s.switch(t + 2_574 * us, 0, Sleeping, LOW);
        s.switch(t + 2_600 * us, 0, Sleeping, IDLE);
    }
    s
}

#[test]
fn does_not_take_unrecorded_futexes_for_no_wait() {
    let all = of(&waiting().jobs(Config::default()), 7).into_iter().cloned().collect::<Vec<_>>();
    assert_eq!((all[0].response, all[0].blocking), (Bounds::Exact(2_574_000), Bounds::Exact(2_515_000)));

    let (events, recorded) = without(&waiting().events, &KINDS[5..]);
    let jobs = jobs(Config { recorded, ..Config::default() }, &events);
    let found = of(&jobs, 7);
    assert!(found.len() >= 5 && found.iter().all(|job| job.complete()));
    for job in &found {
        assert!(!matches!(job.response, Bounds::Exact(_)) && job.response.allows(2_574_000));
        assert!(!matches!(job.window, Bounds::Exact(_)) && job.window.allows(2_569_000));
        assert_eq!((job.blocking, job.execution), (Bounds::Unknown, Bounds::Unknown));
        let printed = explain::job(job, &Names::new()).join("\n");
        assert!(!printed.contains("at least at least"), "{printed}");
        assert!(!printed.contains("waited for no lock") && !printed.contains("not displaced"), "{printed}");
        let object: serde_json::Value = serde_json::from_str(&json(job, &Names::new())).unwrap();
        assert_ne!(object["terms"]["R"]["precision"], "exact");
        assert_eq!(object["terms"]["B"]["precision"], "unknown");
    }
}

/// Its thread ended after an unrecorded wait for a lock: its end is certain, but not its start.
#[test]
fn does_not_count_rest_of_job_as_job() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).switch(300, 0, Sleeping, LOW);
    s.waking(500, 0, HIGH, 0).switch(510, 0, Runnable, HIGH).switch(900, 0, Gone, LOW);
    let recorded = Recorded::all().without(Source::Futexes);
    let jobs = s.jobs(Config { recorded, ..Config::default() });
    let rest = of(&jobs, 7)[1];
    assert_eq!((rest.response, rest.jitter), (Bounds::AtLeast(390), Bounds::Unknown));
    assert_eq!((rest.window, rest.execution), (Bounds::AtLeast(390), Bounds::Unknown));
}

/// A wait for a lock can end by a time-out: then a timer wakes the thread, as it does for the next
/// job.
#[test]
fn timeout_is_not_a_release() {
    let timer = 0xbeef;
    let (mut s, recorded) = (Script::new(), Recorded::all().without(Source::Futexes));
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).at(
        290,
        0,
        Kind::TimerStart { timer, expires: 480 },
    );
    s.switch(300, 0, Sleeping, IDLE);
    s.at(490, 0, Kind::VectorEntry { vector: 236 }).at(495, 0, Kind::TimerExpire { timer, now: 494 });
    s.waking(500, 0, HIGH, 0).at(501, 0, Kind::TimerExpired { timer }).at(
        502,
        0,
        Kind::VectorExit { vector: 236 },
    );
    s.switch(510, 0, Runnable, HIGH).switch(900, 0, Gone, IDLE);
    let rest = |config: Config| of(&s.jobs(Config { monotonic: true, ..config }), 7)[1].clone();

    let job = rest(Config { recorded: recorded.clone(), ..Config::default() });
    assert_eq!((job.response, job.jitter), (Bounds::AtLeast(390), Bounds::Unknown));
    assert_eq!((job.window, job.execution), (Bounds::AtLeast(390), Bounds::Unknown));
    let printed = explain::job(&job, &Names::new()).join("\n");
    assert!(printed.contains("it may be the rest of a job"), "{printed}");

    // Users who know that there are no such waits can declare it.
    let job = rest(Config { recorded, futex: FutexWaits::Suspend, ..Config::default() });
    assert_eq!((job.response, job.window), (Bounds::Exact(420), Bounds::Exact(390)));
    // With recorded calls, there was none.
    assert_eq!(rest(Config::default()).response, Bounds::Exact(420));
}

/// A thread whose creation was not recorded waits for a lock before its first recorded wake-up. Its
/// job starts with the end of that wait, which is B, and in which nothing displaces it.
#[test]
fn starts_rest_of_job_with_rest_of_wait() {
    let enter = Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 };
    let exit = Kind::FutexExit { result: 0 };
    let lock = 0xf00;
    let (begin, end) = (Kind::ContentionBegin { lock, flags: 32 }, Kind::ContentionEnd { lock });
    // The calls, the sleep, and the returns with their times.
    for (calls, reason, returns, acquired) in [
        (&[enter][..], Sleeping, &[(260, exit)][..], 260),
        (&[begin], Uninterruptible, &[(260, end)], 260),
        (&[begin], Sleeping, &[(260, end)], 260),
        // It contends for a lock of the kernel in the call, in which it does not sleep then.
        (&[enter, begin], Uninterruptible, &[(260, end), (280, exit)], 260),
    ] {
        let mut s = Script::new();
        s.at(5, 0, Kind::Wakeup { task: HIGH, cpu: 0, new: true }).switch(10, 0, Runnable, HIGH);
        for (&call, time) in calls.iter().zip(20..) {
            s.at(time, 0, call);
        }
        s.switch(50, 0, reason, LOW).waking(200, 0, HIGH, 0).wakeup(205, 0, HIGH, 0);
        s.switch(210, 0, Runnable, HIGH).at(220, 0, Kind::IrqEntry { irq: 1 });
        s.at(240, 0, Kind::IrqExit { irq: 1 });
        for &(time, kind) in returns {
            s.at(time, 0, kind);
        }
        s.switch(300, 0, Sleeping, IDLE);
        let attempt = 20 + calls.len() as u64 - 1;
        let whole = of(&s.jobs(Config::default()), 7)[0].clone();
        assert_eq!((whole.flaw, whole.window), (None, Bounds::Exact(290)));
        assert_eq!(
            (whole.blocking, whole.interference),
            (Bounds::Exact(acquired - attempt), Bounds::Exact(0))
        );
        s.events.remove(0);
        let rest = of(&s.jobs(Config::default()), 7)[0].clone();
        assert_eq!((rest.flaw, rest.window), (None, Bounds::AtLeast(90)), "{calls:?}");
        assert_eq!(
            (rest.blocking, rest.interference),
            (Bounds::AtLeast(acquired - 210), Bounds::Unknown),
            "{calls:?}"
        );
        let [wait] = &rest.blockings[..] else { panic!("{calls:?}: {:?}", rest.blockings) };
        let [then] = &whole.blockings[..] else { panic!("{calls:?}: {:?}", whole.blockings) };
        assert_eq!((wait.start, wait.end, wait.target), (210, acquired, then.target));
        assert_eq!((wait.role, &wait.owners, wait.woken), (then.role, &then.owners, then.woken));
        assert_eq!(wait.shares.iter().map(|share| share.ns).sum::<u64>(), wait.ns(), "{wait:?}");
    }
}

/// The recording starts within a wake-up.
#[test]
fn first_insertion_is_not_the_release() {
    let mut s = Script::new();
    s.waking(90, 0, HIGH, 0).wakeup(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.switch(300, 0, Sleeping, IDLE);
    let terms = |s: &Script| of(&s.jobs(Config::default()), 7).first().map(|job| (job.response, job.jitter));
    assert_eq!(terms(&s), Some((Bounds::Exact(210), Bounds::Exact(20))));
    s.events.remove(0);
    assert_eq!(terms(&s), Some((Bounds::AtLeast(200), Bounds::AtLeast(10))));
}

/// It sleeps again in the call before that returns: neither sleep ends its job.
#[test]
fn rest_of_job_sleeps_again_in_its_wait() {
    let begin = Kind::ContentionBegin { lock: 0xf00, flags: 32 };
    let end = Kind::ContentionEnd { lock: 0xf00 };
    for contends in [false, true] {
        let mut s = Script::new();
        s.switch(10, 0, Runnable, HIGH);
        s.at(20, 0, Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 });
        if contends {
            s.at(21, 0, begin);
        }
        s.switch(50, 0, Sleeping, LOW).waking(200, 0, HIGH, 0).wakeup(205, 0, HIGH, 0);
        s.switch(210, 0, Runnable, HIGH);
        if contends {
            s.at(215, 0, end);
        }
        s.at(220, 0, Kind::IrqEntry { irq: 1 }).at(240, 0, Kind::IrqExit { irq: 1 });
        s.switch(250, 0, Sleeping, LOW).waking(300, 0, HIGH, 0).wakeup(305, 0, HIGH, 0);
        s.switch(310, 0, Runnable, HIGH).at(320, 0, Kind::FutexExit { result: 0 });
        s.switch(400, 0, Sleeping, IDLE);
        let all = s.jobs(Config::default());
        let [rest] = of(&all, 7)[..] else { panic!("{all:?}") };
        assert_eq!((rest.flaw, rest.window), (None, Bounds::AtLeast(190)));
        assert_eq!((rest.blocking, rest.interference), (Bounds::AtLeast(110), Bounds::Unknown));
    }
}

#[test]
fn distinguishes_unrecorded_interrupts_from_none() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).switch(400, 0, Runnable, LOW);
    s.switch(500, 0, Runnable, HIGH).switch(900, 0, Sleeping, IDLE);
    let recorded = Recorded::all().without(Source::Interrupts);
    let jobs = s.jobs(Config { recorded, ..Config::default() });
    let job = of(&jobs, 7)[0];
    assert_eq!((job.interference, job.window), (Bounds::AtLeast(100), Bounds::Exact(790)));
    assert_eq!(job.execution, Bounds::Between { lo: 0, hi: 690 });
}

#[test]
fn expects_no_futex_calls_of_kernel_threads() {
    let (events, recorded) =
        without(&waiting().events, &["syscalls:sys_enter_futex", "syscalls:sys_exit_futex"]);
    let mut decomposer = Decomposer::new(Config { recorded, ..Config::default() });
    decomposer.name(9, "migration/1");
    let mut found = Vec::new();
    events.iter().for_each(|event| decomposer.feed(event, &mut |job| found.push(job.clone())));
    assert!(of(&found, 9).iter().all(|job| matches!(job.window, Bounds::Exact(_))));
    assert!(of(&found, 7).iter().all(|job| matches!(job.window, Bounds::AtLeast(_))));
}

#[test]
fn decomposes_recordings_with_switches_only() {
    let mut s = Script::new();
    for t in [1_000, 11_000, 21_000] {
        s.switch(t, 0, Runnable, HIGH).switch(t + 300, 0, Runnable, LOW).switch(t + 500, 0, Runnable, HIGH);
        s.switch(t + 800, 0, Sleeping, LOW).switch(t + 900, 0, Sleeping, IDLE);
    }
    let (events, recorded) = without(&s.events, &KINDS[1..]);
    let jobs = jobs(Config { recorded, ..Config::default() }, &events);
    let found = of(&jobs, 7);
    // The time before the first switch is unknown.
    assert_eq!(found.len(), 2);
    for job in found {
        assert_eq!(job.flaw, None);
        assert_eq!((job.response, job.jitter), (Bounds::AtLeast(800), Bounds::Unknown));
        assert_eq!((job.window, job.interference), (Bounds::AtLeast(800), Bounds::AtLeast(200)));
        assert_eq!(job.interference_causes[0].actor, Actor::Thread(9));
    }
}

/// System calls of untraced threads are not recorded.
#[test]
fn records_calls_of_selected_threads() {
    let text = |threads: &str| format!("{}\ncalls of{threads}\n", KINDS.join("\n"));
    let found = |threads: &str| {
        let recorded = Recorded::declared(&text(threads));
        let jobs = waiting().jobs(Config { recorded, ..Config::default() });
        [7, 9].map(|tid| of(&jobs, tid).last().map(|job| job.window))
    };
    // The calls of thread 7 show that they are recorded.
    assert!(matches!(found(""), [Some(Bounds::Exact(_)), _]), "{:?}", found(""));
    // Even if it has no job yet when it makes one.
    let (mut running, number) = (Script::new(), 230);
    running
        .switch(10, 0, Runnable, HIGH)
        .at(20, 0, Kind::SyscallEnter { number })
        .switch(30, 0, Sleeping, LOW);
    running.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).switch(300, 0, Sleeping, LOW);
    let recorded = Recorded::declared(&text(""));
    assert_eq!(
        of(&running.jobs(Config { recorded, ..Config::default() }), 7)[0].response,
        Bounds::Exact(200)
    );
    let mut low = Script::new();
    low.waking(100, 0, LOW, 0).switch(110, 0, Runnable, LOW).switch(300, 0, Sleeping, IDLE);
    for (threads, exact) in [("", false), (" 9", true)] {
        let recorded = Recorded::declared(&text(threads));
        let jobs = low.jobs(Config { recorded, ..Config::default() });
        assert_eq!(matches!(jobs[0].window, Bounds::Exact(_)), exact, "{threads}");
    }
}

/// An untraced thread of ordinary priority.
const OTHER: Task = task(20, 20);

fn narrow(lines: &str) -> Config {
    let recorded = Recorded::declared(&format!("{}\n{lines}", KINDS.join("\n")));
    Config { recorded, ..Config::default() }
}

/// Returns all jobs, including those open at the end, and the number of missing or contradictory
/// events.
fn all_jobs(config: Config, events: &[Event]) -> (Vec<Job>, u64) {
    let (mut decomposer, mut found) = (Decomposer::new(config), Vec::new());
    decomposer.name(7, "high");
    events.iter().for_each(|event| decomposer.feed(event, &mut |job| found.push(job.clone())));
    decomposer.finish(&mut |job| found.push(job.clone()));
    let counters = decomposer.counters();
    (found, counters.contradictions + counters.unseen_switches)
}

/// A traced thread is displaced, and the later activity of the others is not recorded.
fn unseen_others() -> Script {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH).switch(200, 0, Runnable, OTHER);
    // Thread 20 hands the CPU to thread 21, unrecorded.
    s.events.push(Event {
        time: 400,
        cpu: 0,
        by: 21,
        kind: Kind::Switch { from: task(21, 20), reason: Sleeping, to: HIGH },
    });
    s.events.push(Event {
        time: 500,
        cpu: 0,
        by: 7,
        kind: Kind::Switch { from: HIGH, reason: Sleeping, to: OTHER },
    });
    s.events.push(Event { time: 9_000, cpu: 1, by: 0, kind: Kind::Waking { task: OTHER, cpu: 1 } });
    s.events.push(Event { time: 9_100, cpu: 1, by: 0, kind: Kind::IrqEntry { irq: 3 } });
    // A long-running interrupt on another CPU.
    s.events.push(Event { time: 9_200, cpu: 2, by: 22, kind: Kind::IrqEntry { irq: 3 } });
    s
}

#[test]
fn omits_threads_without_recorded_switches() {
    let events = unseen_others().events;
    for lines in [
        "switches of 7\nswitches followed\n",
        "switches of\nswitches named high\n",
        "switches of\nswitches at 5..15\n",
    ] {
        let (jobs, doubtful) = all_jobs(narrow(lines), &events);
        assert!(jobs.iter().all(|job| job.actor == Actor::Thread(7)), "{lines}: {jobs:?}");
        assert_eq!((jobs.len(), doubtful), (1, 0), "{lines}");
        let job = &jobs[0];
        assert_eq!(
            (job.flaw, job.response, job.interference),
            (None, Bounds::Exact(400), Bounds::Exact(200))
        );
        // The duration of the displacement by others is known, but not their identity.
        let who: Vec<_> = job.interference_causes.iter().map(|cause| (cause.actor, cause.ns)).collect();
        assert_eq!(who, [(Actor::Unseen, 200)]);
        assert_eq!(job.jitter_causes.iter().map(|cause| cause.actor).collect::<Vec<_>>(), [Actor::Unseen]);
    }
    // If all switches are recorded, some are missing.
    let (jobs, doubtful) = all_jobs(narrow(""), &events);
    assert!(doubtful > 0 && jobs.iter().any(|job| job.actor == Actor::Thread(20)));
}

#[test]
fn reports_unrecorded_switches_of_others() {
    let recorded = narrow("switches of 7\nswitches followed\n").recorded;
    let missing = recorded.missing();
    assert_eq!(missing[0].what, "switches and wake-ups of threads that were not traced");
    assert!(narrow("").recorded.missing().is_empty(), "{:?}", narrow("").recorded.missing());
}

#[test]
fn recognizes_traced_threads_started_by_others() {
    let start = |by: Task, child: Task| {
        let mut s = Script::new();
        s.switch(5, 0, Runnable, HIGH).switch(10, 0, Runnable, by);
        s.at(20, 0, Kind::Wakeup { task: child, cpu: 1, new: true });
        s.switch(30, 1, Runnable, HIGH).switch(40, 1, Sleeping, child);
        s.events.push(Event {
            time: 50,
            cpu: 1,
            by: child.id,
            kind: Kind::Switch { from: child, reason: Sleeping, to: LOW },
        });
        all_jobs(narrow("switches of 7 9\nswitches followed\n"), &s.events).0
    };
    let jobs = |jobs: &[Job]| of(jobs, 30).len();
    assert_eq!(jobs(&start(HIGH, task(30, 20))), 1);
    assert_eq!(jobs(&start(OTHER, task(30, 20))), 0);
    // A switch with the idle thread would not be recorded if the other thread were not traced
    // either.
    let mut s = Script::new();
    s.switch(10, 0, Runnable, task(30, 20)).switch(20, 0, Sleeping, IDLE);
    s.waking(100, 0, task(30, 20), 0).switch(110, 0, Runnable, task(30, 20)).switch(200, 0, Sleeping, IDLE);
    assert_eq!(jobs(&all_jobs(narrow("switches of 7\nswitches followed\n"), &s.events).0), 1);
    assert_eq!(jobs(&all_jobs(narrow("switches of 7\nswitches at 0..15\n"), &s.events).0), 0);
}
