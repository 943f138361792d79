//! Behavior of kernels outside a tidy model: wake-ups before the sleep, displaced softirqs, timers
//! without an end; and the results of a watch for late jobs.

use crate::support::{IDLE, Script, of, task};
use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping};
use punctual_trace::event::{Event, Kind, Noise, Section, Task};
use punctual_trace::jobs::{
    Actor, Bounds, Cause, Config, Decomposer, DisabledSection, Flaw, FutexWaits, Job, JobKind, ReleasedBy,
    Select,
};
use punctual_trace::names::Names;
use punctual_trace::recorded::{Recorded, Source};
use punctual_trace::stats::{Key, Watch};
use punctual_trace_report::explain;
use punctual_trace_report::export::json;

const HIGH: Task = task(7, 10);
const LOW: Task = task(9, 30);

#[test]
fn counts_release_from_wake_up_before_sleep() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    // Another CPU wakes it while it is on its way to sleep; the kernel finishes the sleep first.
    s.waking(195, 1, HIGH, 0).switch(200, 0, Sleeping, IDLE).wakeup(210, 1, HIGH, 0);
    s.switch(220, 0, Runnable, HIGH);
    // And again, but this time early enough to prevent the sleep.
    s.waking(250, 1, HIGH, 0).wakeup(251, 1, HIGH, 0).switch(300, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    assert_eq!(jobs.iter().map(|job| job.response).collect::<Vec<_>>(), [100, 105].map(Bounds::Exact));
    assert_eq!(jobs[1].jitter, Bounds::Exact(25));
    assert!(jobs.iter().all(|job| job.complete()));
}

/// A thread that is killed while waiting for a lock does not return from the call.
#[test]
fn lists_wait_that_ends_with_thread() {
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    s.at(200, 0, Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 }).switch(210, 0, Sleeping, IDLE);
    s.waking(500, 0, HIGH, 0).switch(510, 0, Runnable, HIGH).switch(600, 0, Gone, IDLE);
    let jobs = s.jobs(Config::default());
    let waits: Vec<_> = jobs[0].blockings.iter().map(|wait| (wait.start, wait.end)).collect();
    assert_eq!((jobs.len(), jobs[0].blocking, waits), (1, Bounds::Exact(400), vec![(200, 600)]));
}

/// Under PREEMPT_RT a softirq runs in a thread and is displaced with it.
#[test]
fn softirq_follows_thread() {
    let mut s = Script::new();
    s.waking(100, 0, LOW, 0).switch(110, 0, Runnable, LOW);
    s.at(150, 0, Kind::SoftirqEntry { softirq: 3 });
    s.waking(160, 0, HIGH, 0).switch(170, 0, Runnable, HIGH).switch(270, 0, Sleeping, LOW);
    s.at(300, 0, Kind::SoftirqExit { softirq: 3 }).switch(350, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config { handlers: true, ..Config::default() });
    let softirq = jobs.iter().find(|job| job.kind == JobKind::Softirq).unwrap();
    assert_eq!((softirq.window, softirq.interference), (Bounds::Exact(150), Bounds::Exact(100)));
    let low = of(&jobs, 9)[0];
    assert_eq!(low.interference, Bounds::Exact(150));
    let mut causes = low.interference_causes.clone();
    causes.sort_by_key(|cause| cause.actor);
    let cause = |actor, ns| Cause { actor, ns, times: 1 };
    assert_eq!(causes, [cause(Actor::Thread(7), 100), cause(Actor::Softirq(3), 50)]);
    assert!(low.complete());
}

#[test]
fn counts_softirqs_as_execution_of_ksoftirqd() {
    let daemon = task(20, 120);
    let mut s = Script::new();
    s.waking(100, 0, daemon, 0).switch(110, 0, Runnable, daemon);
    s.at(120, 0, Kind::SoftirqEntry { softirq: 3 }).at(130, 0, Kind::IrqEntry { irq: 1 });
    s.at(135, 0, Kind::IrqExit { irq: 1 }).at(180, 0, Kind::SoftirqExit { softirq: 3 });
    s.at(185, 0, Kind::SyscallExit { number: 0 }).at(190, 0, Kind::SyscallEnter { number: 0 });
    s.switch(190, 0, Sleeping, IDLE);
    let mut decomposer = Decomposer::new(Config { select: Select::thread(20), ..Config::default() });
    decomposer.name(20, "ksoftirqd/0");
    let mut jobs = Vec::new();
    s.events.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
    assert_eq!(jobs[0].interference, Bounds::Exact(5));
    assert_eq!(jobs[0].execution.hi(), Some(75));
}

#[test]
fn timer_without_exit_releases_nothing() {
    let mut s = Script::new();
    s.at(50, 0, Kind::TimerStart { timer: 0xf00, expires: 100 });
    s.at(120, 0, Kind::VectorEntry { vector: 236 }).at(121, 0, Kind::TimerExpire { timer: 0xf00, now: 120 });
    s.at(125, 0, Kind::VectorExit { vector: 236 });
    s.waking(200, 0, HIGH, 0).switch(210, 0, Runnable, HIGH).switch(300, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config { monotonic: true, ..Config::default() });
    assert_eq!((jobs[0].released_by, jobs[0].response), (ReleasedBy::Wake, Bounds::Exact(100)));
}

#[test]
fn raises_alarms_for_missed_deadlines_and_counts_them() {
    let mut s = Script::new();
    for (release, length) in [(1_000, 400), (2_000, 600), (3_000, 500)] {
        s.waking(release, 0, HIGH, 0).switch(release + 10, 0, Runnable, HIGH);
        s.switch(release + length, 0, Sleeping, IDLE);
        s.waking(release + 700, 0, LOW, 0).switch(release + 710, 0, Runnable, LOW);
        s.switch(release + 900, 0, Sleeping, IDLE);
    }
    let mut watch = Watch::new(Config::default(), 2);
    let key = Key { kind: JobKind::Thread, actor: Actor::Thread(7) };
    watch.deadline(key, 500);
    watch.default_deadline(Some(1_000));
    let mut late = Vec::new();
    for event in &s.events {
        watch.feed(event, &mut |_| {}, &mut |whole| late.push((whole.job.end, whole.events.len())));
    }
    assert_eq!(late, [(2_600, 3)]);
    let task = watch.tasks().iter().find(|task| task.key() == key).unwrap();
    assert_eq!((task.jobs(), task.misses()), (3, 1));
    assert_eq!(task.worst().iter().map(|whole| whole.job.end).collect::<Vec<_>>(), [2_600, 3_500]);
}

/// A reader that detects a gap only at its end reports it too late for jobs that have ended, but
/// not for those still running.
#[test]
fn flags_jobs_in_gap_announced_at_end() {
    let mut s = Script::new();
    s.waking(90, 1, LOW, 1).switch(95, 1, Runnable, LOW).at(110, 0, Kind::TimerExpired { timer: 1 });
    s.waking(130, 1, HIGH, 1).switch(140, 1, Runnable, HIGH);
    s.at(150, 0, Kind::Lost { count: 9 });
    s.switch(160, 1, Sleeping, LOW).at(200, 0, Kind::TimerExpired { timer: 1 });
    s.switch(300, 1, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    assert_eq!(of(&jobs, 7)[0].flaw, Some(Flaw::Lost));
    // The thread was displaced while events were lost.
    assert_eq!(of(&jobs, 9)[0].flaw, Some(Flaw::Lost));
}

/// The causes of a job's wait for the CPU are known however long it lasts.
#[test]
fn accounts_for_all_time_with_short_history() {
    let mut s = Script::new();
    s.waking(100, 0, LOW, 0).switch(110, 0, Runnable, LOW);
    s.waking(200, 0, HIGH, 0).switch(200, 0, Runnable, HIGH);
    for turn in 0..1_000 {
        let time = 300 + turn * 100;
        s.at(time, 0, Kind::IrqEntry { irq: 1 }).at(time + 10, 0, Kind::IrqExit { irq: 1 });
        s.switch(time + 50, 0, Runnable, if turn % 2 == 0 { task(8, 10) } else { HIGH });
    }
    s.switch(200_000, 0, Sleeping, LOW).switch(200_100, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config { history: 8, ..Config::default() });
    let low = of(&jobs, 9)[0];
    let mut causes: Vec<_> = low.interference_causes.iter().map(|cause| (cause.actor, cause.ns)).collect();
    causes.sort_unstable();
    let total = 199_800;
    let expected = [
        (Actor::Thread(7), total - 500 * 90 - 10_000),
        (Actor::Thread(8), 500 * 90),
        (Actor::Irq(1), 10_000),
    ];
    assert_eq!(low.interference, Bounds::Exact(total));
    assert_eq!(causes, expected);
    assert_eq!(causes.iter().map(|cause| cause.1).sum::<u64>(), total);
}

#[test]
fn ends_job_at_condition_wait_if_only_mutexes_block() {
    let wait = |value| Kind::FutexEnter { word: 0x10, operation: 9 | 128, value };
    let mut s = Script::new();
    s.waking(100, 0, HIGH, 0).switch(110, 0, Runnable, HIGH);
    for (time, value) in [(150, 2), (250, 7), (350, 2)] {
        s.at(time, 0, wait(value)).switch(time + 10, 0, Sleeping, LOW);
        s.waking(time + 20, 0, HIGH, 0).switch(time + 30, 0, Runnable, HIGH);
        s.at(time + 40, 0, Kind::FutexExit { result: 0 });
    }
    s.switch(450, 0, Sleeping, LOW);
    let jobs = s.jobs(Config { futex: FutexWaits::MutexesBlock, ..Config::default() });
    let terms: Vec<_> = of(&jobs, 7).iter().map(|job| (job.response, job.blocking)).collect();
    assert_eq!(terms, [(160, 40), (180, 40)].map(|(r, b)| (Bounds::Exact(r), Bounds::Exact(b))));
    let jobs = s.jobs(Config { futex: FutexWaits::Block, ..Config::default() });
    assert_eq!(of(&jobs, 7).iter().map(|job| job.blocking).collect::<Vec<_>>(), [Bounds::Exact(120)]);
}

/// Kernels occasionally omit a switch without counting a loss. Two events bound a switch from the
/// idle thread; jobs without the switch to it are flagged.
#[test]
fn bounds_job_without_switch_from_idle_and_flags_that_without_switch_to_idle() {
    let without = |lost: usize| {
        let mut s = Script::new();
        for release in [1_000, 2_000, 3_000] {
            s.waking(release, 0, HIGH, 0).switch(release + 10, 0, Runnable, HIGH);
            s.switch(release + 400, 0, Sleeping, IDLE);
            // The timer's interrupt finds the CPU idle.
            s.at(release + 600, 0, Kind::VectorEntry { vector: 236 });
            s.at(release + 610, 0, Kind::VectorExit { vector: 236 });
        }
        s.events.remove(lost);
        s.jobs(Config::default())
    };
    let jobs = without(6);
    assert!(jobs.iter().all(Job::complete) && jobs.len() == 3);
    let terms: Vec<_> = jobs.iter().map(|job| (job.response, job.jitter, job.window)).collect();
    let whole = (Bounds::Exact(400), Bounds::Exact(10), Bounds::Exact(390));
    // It may have begun to run at any time from its wake-up to its end, which is its next event.
    let between = Bounds::Between { lo: 0, hi: 400 };
    assert_eq!(terms, [whole, (Bounds::Exact(400), between, between), whole]);
    assert_eq!(jobs.iter().map(|job| job.bounded_switches).collect::<Vec<_>>(), [0, 1, 0]);
    let bad = Some(Flaw::Contradiction);
    // The job is there, the next one is in doubt, and later ones are fine.
    let from: Vec<_> = without(2).iter().map(|job| job.flaw).collect();
    assert!(from.starts_with(&[bad]) && from.ends_with(&[None]), "{from:?}");
}

/// A thread contends for a lock between two switches, and only the second one is recorded. The end
/// of its wake-up shows that it runs already; without that, it may still be on its way to sleep.
#[test]
fn contention_without_switch_and_wake_up_makes_blocking_unknown() {
    let blocking = |wake_ups: bool| {
        let mut s = Script::new();
        s.switch(100, 0, Runnable, HIGH).switch(500, 0, Sleeping, IDLE);
        s.at(700, 0, Kind::VectorEntry { vector: 251 }).waking(710, 0, HIGH, 0);
        if wake_ups {
            s.wakeup(720, 0, HIGH, 0);
        }
        s.at(730, 0, Kind::VectorExit { vector: 251 }).switch(740, 0, Runnable, HIGH);
        // The kernel does not record this one.
        s.events.pop();
        s.at(800, 0, Kind::ContentionBegin { lock: 0xff00, flags: 1 });
        s.at(850, 0, Kind::ContentionEnd { lock: 0xff00 }).switch(900, 0, Sleeping, IDLE);
        let recorded = Recorded::all();
        let recorded = if wake_ups { recorded } else { recorded.without(Source::Wakeups) };
        let jobs = s.jobs(Config { recorded, ..Config::default() });
        let job = jobs.last().unwrap();
        assert!(job.complete(), "{job:?}");
        job.blocking
    };
    assert_eq!(blocking(true), Bounds::Exact(50));
    assert_eq!(blocking(false), Bounds::Unknown);
}

/// Explanations of J by `preemptirq` events, and NMIs reported by osnoise.
#[test]
fn names_disabled_section_that_delayed_start() {
    let off = |section| Kind::Disable { section, caller: 0x1a2b };
    let on = |section| Kind::Enable { section, caller: 0x1a40 };
    let mut s = Script::new();
    s.at(10_000, 0, off(Section::Preemption)).at(12_000, 0, on(Section::Preemption));
    s.at(15_000, 0, off(Section::Interrupts)).waking(20_000, 1, HIGH, 0).at(
        60_000,
        0,
        on(Section::Interrupts),
    );
    s.at(60_100, 0, off(Section::Interrupts)).switch(61_000, 0, Runnable, HIGH);
    s.at(61_200, 0, on(Section::Interrupts));
    s.at(70_000, 0, Kind::Noise { source: Noise::Nmi, ns: 1_500 });
    s.at(71_000, 0, Kind::Noise { source: Noise::Irq(24), ns: 900 });
    s.switch(80_000, 0, Sleeping, IDLE);
    // Nothing was disabled for long in this job.
    s.waking(90_000, 0, HIGH, 0).switch(91_000, 0, Runnable, HIGH).switch(95_000, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    assert_eq!(
        jobs[0].disabled,
        Some(DisabledSection { section: Section::Interrupts, caller: 0x1a2b, ns: 40_000 })
    );
    assert_eq!((jobs[0].nmi, jobs[1].disabled, jobs[1].nmi), (1_500, None, 0));
    assert_eq!(jobs[0].interference, Bounds::Exact(0));
    let sentences = punctual_trace_report::explain::job(&jobs[0], &Names::new());
    let text = "; interrupts were off for 40 µs of it, by the kernel's code at _stext+0x1a2b.";
    assert!(sentences[1].ends_with(text), "{sentences:?}");
    assert!(sentences[6].contains("1.5 µs of it and of I in non-maskable interrupts"), "{sentences:?}");
    let json: serde_json::Value = serde_json::from_str(&json(&jobs[0], &Names::new())).unwrap();
    assert_eq!(json["off"], serde_json::json!({"what": "interrupts", "caller": 0x1a2b, "ns": 40_000}));
    assert_eq!(json["nmi_ns"], 1_500);
}

/// A mutex that spins before it sleeps reports two starts and one end. All of it is one wait, and
/// the next one is whole, too.
#[test]
fn counts_spin_then_sleep_as_one_wait() {
    let (spinning, sleeping) = (1 | 32, 32);
    let begin = |flags| Kind::ContentionBegin { lock: 0xaa00, flags };
    let end = Kind::ContentionEnd { lock: 0xaa00 };
    let mut s = Script::new();
    s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH).at(120, 0, Kind::SyscallEnter { number: 1 });
    s.at(500, 0, begin(spinning)).at(1_472, 0, begin(sleeping)).switch(1_500, 0, Sleeping, LOW);
    s.waking(4_000, 0, HIGH, 0).switch(4_010, 0, Runnable, HIGH).at(4_020, 0, end);
    s.at(5_000, 0, begin(spinning)).at(5_100, 0, end).switch(6_000, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let job = of(&jobs, 7)[0];
    assert!(job.complete());
    assert_eq!(job.blocking, Bounds::Exact(3_520 + 100));
    assert_eq!(
        job.blockings.iter().map(|wait| (wait.start, wait.end)).collect::<Vec<_>>(),
        [(500, 4_020), (5_000, 5_100)]
    );
}

/// A handler whose exit was lost does not run forever: later contention is the thread's own wait.
#[test]
fn counts_contention_after_handler_whose_exit_was_lost() {
    let mut s = Script::new();
    s.waking(90, 0, LOW, 0).switch(100, 0, Runnable, LOW).at(110, 0, Kind::IrqEntry { irq: 24 });
    s.at(120, 0, Kind::Lost { count: 3 }).switch(200, 0, Sleeping, IDLE);
    for job in 1..=2 {
        let t = job * 10_000;
        s.waking(t, 0, HIGH, 0).switch(t + 10, 0, Runnable, HIGH);
        s.at(t + 100, 0, Kind::ContentionBegin { lock: 0xff00, flags: 1 });
        s.at(t + 850, 0, Kind::ContentionEnd { lock: 0xff00 }).switch(t + 2_000, 0, Sleeping, IDLE);
    }
    let jobs = s.jobs(Config::default());
    let [touched, after] = of(&jobs, 7)[..] else { panic!("{jobs:?}") };
    assert_eq!((touched.flaw, after.flaw), (Some(Flaw::Lost), None));
    assert_eq!((after.blocking, after.interference), (Bounds::Exact(750), Bounds::Exact(0)));
}

/// A job with more waits than the list can hold keeps the longest, at any position.
#[test]
fn lists_longest_waits() {
    let mut s = Script::new();
    s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH);
    for wait in 0..100 {
        let (t, ns) = (1_000 * (wait + 1), if wait == 70 { 500 } else { wait });
        s.at(t, 0, Kind::ContentionBegin { lock: 0xff00, flags: 1 });
        s.at(t + ns, 0, Kind::ContentionEnd { lock: 0xff00 });
    }
    s.switch(200_000, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let job = of(&jobs, 7)[0];
    let lengths: Vec<_> = job.blockings.iter().map(|wait| wait.ns()).collect();
    assert_eq!((job.blockings_left_out, lengths.len()), (68, 32));
    let listed = (68..100).map(|wait| if wait == 70 { 500 } else { wait }).collect::<Vec<_>>();
    assert_eq!(lengths, listed);
}

/// An interrupt can occur between the event of a switch and the switch itself, in the name of the
/// thread being switched out.
#[test]
fn blames_next_thread_after_interrupt_amid_switch() {
    let mut s = Script::new();
    s.waking(50, 0, HIGH, 0)
        .switch(60, 0, Runnable, HIGH)
        .waking(70, 0, LOW, 0)
        .switch(100, 0, Sleeping, IDLE);
    s.switch(200, 0, Runnable, HIGH).switch(300, 0, Sleeping, task(8, 20));
    // The event has named the next thread, and the CPU still belongs to the previous one.
    for (time, kind) in [(310, Kind::IrqEntry { irq: 24 }), (320, Kind::IrqExit { irq: 24 })] {
        s.events.push(Event { time, cpu: 0, by: HIGH.id, kind });
    }
    s.switch(700, 0, Sleeping, LOW).switch(900, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let causes: Vec<_> = of(&jobs, 9)[0].jitter_causes.iter().map(|cause| (cause.actor, cause.ns)).collect();
    assert!(causes.contains(&(Actor::Thread(8), 390)), "{causes:?}");
}

/// The wake-up names a CPU without events so far, and the thread immediately runs on another one.
#[test]
fn attributes_no_cause_before_first_event() {
    let mut s = Script::new();
    s.switch(50, 0, Sleeping, LOW);
    s.waking(100, 0, HIGH, 1).at(104, 0, Kind::Migrate { task: HIGH, from: 1, to: 0 });
    s.switch(130, 0, Runnable, HIGH).switch(200, 0, Sleeping, IDLE);
    let jobs = s.jobs(Config::default());
    let cause = |actor, ns| Cause { actor, ns, times: 1 };
    assert_eq!(of(&jobs, 7)[0].jitter_causes, [cause(Actor::Unseen, 4), cause(Actor::Thread(9), 26)]);
}

/// Handlers spin. Of several waits the longest is named.
#[test]
fn names_lock_that_handler_waited_for() {
    let mut s = Script::new();
    s.at(100, 0, Kind::VectorEntry { vector: 236 });
    for (begin, end, lock) in [(110, 115, 0x10), (120, 140, 0x20), (141, 150, 0x10)] {
        s.at(begin, 0, Kind::ContentionBegin { lock, flags: 1 }).at(end, 0, Kind::ContentionEnd { lock });
    }
    s.at(200, 0, Kind::VectorExit { vector: 236 });
    s.at(300, 0, Kind::VectorEntry { vector: 236 }).at(310, 0, Kind::VectorExit { vector: 236 });
    let jobs = s.jobs(Config { handlers: true, ..Config::default() });
    let printed =
        |job| explain::job(job, &Names::new()).into_iter().find(|text| text.starts_with("B: ")).unwrap();
    assert_eq!((jobs[0].blocking, jobs[0].blockings_left_out), (Bounds::Exact(34), 2));
    let longest =
        "B: 34 ns of 100 ns W: blocked 3 times, the longest for 20 ns: spinning on kernel lock 0x20.";
    assert_eq!(printed(&jobs[0]), longest);
    assert_eq!(printed(&jobs[1]), "B: 0 ns of 10 ns W: it waited for no lock.");
}

/// An idle CPU pulls a displaced thread; the switch to it is missing, and it first contends for a
/// lock.
#[test]
fn bounds_switch_to_pulled_thread_that_contends() {
    let (low, high) = (task(10, 80), task(11, 60));
    let lock = 0xffff_8800_1234;
    let mut trace = Script::new();
    trace.switch(50, 1, Sleeping, IDLE);
    trace.waking(100, 0, low, 0).wakeup(110, 0, low, 0).switch(120, 0, Runnable, low);
    trace.waking(200, 0, high, 0).wakeup(210, 0, high, 0).switch(220, 0, Runnable, high);
    trace.at(300, 1, Kind::Migrate { task: low, from: 0, to: 1 });
    for (time, kind) in [
        (320, Kind::ContentionBegin { lock, flags: 8 }),
        (350, Kind::ContentionEnd { lock }),
        (400, Kind::Switch { from: low, reason: Sleeping, to: IDLE }),
    ] {
        trace.events.push(Event { time, cpu: 1, by: low.id, kind });
    }
    let jobs = trace.jobs(Config { monotonic: true, ..Config::default() });
    let job = of(&jobs, 10)[0];
    assert!(job.complete(), "{job:#?}");
    assert_eq!(job.bounded_switches, 1);
    assert_eq!(job.interference, Bounds::Between { lo: 80, hi: 100 });
    assert_eq!(job.blocking, Bounds::Exact(30));
}
