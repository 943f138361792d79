//! Decomposition of recordings into jobs and their terms.

mod choice {
    //! Selection of the decomposed jobs.

    use crate::support::{IDLE, Script, task};
    use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping};
    use punctual_trace::event::{Kind, Task};
    use punctual_trace::jobs::{Actor, Bounds, Config, Job, ReleasedBy, Select};

    const WORKER: Task = task(7, 120);
    const CHILD: Task = task(8, 120);
    const GRANDCHILD: Task = task(9, 120);

    fn actors(jobs: &[Job]) -> Vec<Actor> {
        jobs.iter().map(|job| job.actor).collect()
    }

    #[test]
    fn selects_marking_threads_of_any_priority() {
        let mut s = Script::new();
        s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER);
        s.at(140, 0, Kind::JobStart { task: 1, released: 90 }).at(200, 0, Kind::JobEnd { task: 1 });
        s.switch(210, 0, Sleeping, IDLE);
        s.waking(300, 0, WORKER, 0).switch(310, 0, Runnable, WORKER);
        s.at(340, 0, Kind::JobStart { task: 1, released: 290 }).at(400, 0, Kind::JobEnd { task: 1 });
        s.switch(410, 0, Sleeping, IDLE);
        // Another thread marks nothing.
        s.waking(500, 0, CHILD, 0).switch(510, 0, Runnable, CHILD).switch(520, 0, Sleeping, IDLE);
        let select = Select { marked: true, ..Select::real_time() };
        let jobs = s.jobs(Config { select, monotonic: true, ..Config::default() });
        let seen: Vec<_> =
            jobs.iter().map(|job| (job.task, job.response, job.released_by, job.complete())).collect();
        // That the thread marks jobs was unknown before its first mark, so the first job begins
        // there.
        let expected = [110, 110].map(|response| (Some(1), Bounds::Exact(response), ReleasedBy::Mark, true));
        assert_eq!(seen, expected);
        assert_eq!((jobs[0].start, jobs[1].start), (140, 310));
        assert_eq!(s.jobs(Config::default()), []);
    }

    #[test]
    fn selects_threads_and_descendants() {
        let mut s = Script::new();
        let new = |task| Kind::Wakeup { task, cpu: 0, new: true };
        s.switch(50, 0, Runnable, WORKER).at(100, 0, new(CHILD));
        s.switch(110, 0, Sleeping, CHILD).at(120, 0, new(GRANDCHILD));
        s.switch(130, 0, Sleeping, GRANDCHILD).switch(150, 0, Gone, IDLE);
        s.waking(160, 0, WORKER, 0).switch(170, 0, Runnable, WORKER).switch(180, 0, Sleeping, IDLE);
        // The ID is reused for another thread, which an unrelated thread starts.
        let stranger = task(30, 120);
        s.switch(200, 0, Runnable, stranger).at(210, 0, new(GRANDCHILD));
        s.switch(220, 0, Sleeping, GRANDCHILD).switch(230, 0, Sleeping, IDLE);
        let all = Select { priorities: Some(0..=139), ..Select::default() };
        let some = Select { among: vec![7], ..all.clone() };
        let jobs = s.jobs(Config { select: some, ..Config::default() });
        assert_eq!(actors(&jobs), [8, 9, 7].map(Actor::Thread));
        assert_eq!(jobs[0].released_by, ReleasedBy::New);
        assert_eq!(
            actors(&s.jobs(Config { select: all, ..Config::default() })),
            [8, 9, 7, 9].map(Actor::Thread)
        );
        // The other criteria still have to apply.
        let real_time = Select { among: vec![7], ..Select::real_time() };
        assert_eq!(s.jobs(Config { select: real_time, ..Config::default() }), []);
    }
}

mod futex_choice {
    //! Default choice of blocking futex waits: those on apparent locks.

    use crate::support::{IDLE, Script, of, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::event::{Kind, Task};
    use punctual_trace::jobs::{Bounds, Config, FutexRole, FutexWaits};
    use punctual_trace::stats::Watch;
    use punctual_trace_report::explain;

    const WORKER: Task = task(7, 10);
    const OTHER: Task = task(9, 30);
    const MS: u64 = 1_000_000;
    const EXIT: Kind = Kind::FutexExit { result: 0 };

    fn wait(word: u64, value: u32) -> Kind {
        Kind::FutexEnter { word, operation: 9 | 128, value }
    }

    /// A worker gets work through a condition variable ten times a second, and once contends for a
    /// mutex.
    fn worker() -> Script {
        let mut s = Script::new();
        for job in 1..6 {
            let t = job * 100 * MS;
            s.waking(t, 0, WORKER, 0).switch(t + 10, 0, Runnable, WORKER).at(t + 20, 0, EXIT);
            if job == 3 {
                s.at(t + MS, 0, wait(0x2000, 2)).switch(t + MS + 100, 0, Sleeping, OTHER);
                s.waking(t + 3 * MS, 0, WORKER, 0).switch(t + 3 * MS + 10, 0, Runnable, WORKER);
                s.at(t + 3 * MS + 20, 0, EXIT);
            }
            s.at(t + 4 * MS, 0, wait(0x1000, job as u32)).switch(t + 4 * MS + 100, 0, Sleeping, IDLE);
        }
        s
    }

    #[test]
    fn ends_job_where_worker_waits_for_next_one() {
        let jobs = worker().jobs(Config::default());
        let found = of(&jobs, 7);
        // The first wake-up may have been the end of a wait, and so may the next one.
        assert_eq!(found.len(), 5);
        for (index, job) in found.iter().enumerate().skip(2) {
            assert_eq!((job.flaw, job.response), (None, Bounds::Exact(4 * MS + 100)), "{index}");
            // The counter of a condition variable passes through the value of a contended mutex.
            assert_eq!(job.ended_on, Some((0x1000, FutexRole::LikelyCondition)), "{index}");
        }
        assert_eq!(found[2].blocking, Bounds::Exact(2 * MS + 20));
        assert_eq!(found[2].blockings[0].role, Some(FutexRole::LikelyLock));
        // Taken for a lock, all of it is one job.
        let jobs = worker().jobs(Config { futex: FutexWaits::Block, ..Config::default() });
        assert!(of(&jobs, 7).is_empty());
    }

    #[test]
    fn reports_assumption_and_its_option() {
        let assumed = |futex| {
            let mut watch = Watch::new(Config { futex, ..Config::default() }, 1);
            let mut script = worker();
            script.waking(700 * MS, 0, WORKER, 0).switch(700 * MS + 10, 0, Runnable, WORKER);
            script.at(700 * MS + 20, 0, EXIT).switch(701 * MS, 0, Sleeping, IDLE);
            // The first job has no recorded start, and the blocking has to be in one that counts.
            script.events.drain(..3);
            script.waking(800 * MS, 0, WORKER, 0).switch(800 * MS + 10, 0, Runnable, WORKER);
            script.at(800 * MS + 20, 0, wait(0x1000, 7)).switch(800 * MS + 30, 0, Sleeping, IDLE);
            script.waking(900 * MS, 0, WORKER, 0).switch(900 * MS + 10, 0, Runnable, WORKER);
            script.at(900 * MS + 20, 0, EXIT).switch(901 * MS, 0, Sleeping, IDLE);
            script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
            watch.tasks().first().map(explain::assumptions).unwrap_or_default().join("\n")
        };
        let judged = assumed(FutexWaits::Judged);
        assert!(judged.contains("taken for a condition") && judged.contains("--futex block"), "{judged}");
        assert!(judged.contains("1 wait on a futex whose word is that of a contended mutex"), "{judged}");
        let block = assumed(FutexWaits::Block);
        assert!(block.contains("looks like a condition") && block.contains("--futex auto"), "{block}");
    }
}

mod likely {
    //! Likely values of SS and C that are known only within bounds.

    use crate::support::{IDLE, Script, jobs, of, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::event::{Event, Kind, Task};
    use punctual_trace::jobs::{Bounds, Config};
    use punctual_trace::names::Names;
    use punctual_trace::stats::Watch;
    use punctual_trace_report::explain;
    use punctual_trace_report::export::json;

    const CONTROL: Task = task(7, 10);
    const URGENT: Task = task(9, 5);
    const CALL: u32 = 230;

    /// It returns from its sleep, computes for 600 µs without a call, is displaced in the middle,
    /// and sleeps again.
    fn computing(calls: bool) -> Script {
        let mut s = Script::new();
        for job in 1..4 {
            let t = job * 10_000_000;
            s.waking(t, 0, CONTROL, 0).switch(t + 5_000, 0, Runnable, CONTROL);
            if calls {
                s.at(t + 7_000, 0, Kind::SyscallExit { number: CALL });
            }
            s.waking(t + 300_000, 0, URGENT, 0).switch(t + 303_000, 0, Runnable, URGENT);
            s.switch(t + 400_000, 0, Sleeping, CONTROL);
            if calls {
                s.at(t + 700_000, 0, Kind::SyscallEnter { number: CALL });
            }
            s.switch(t + 703_000, 0, Sleeping, IDLE);
        }
        s
    }

    #[test]
    fn gives_likely_values_beside_certain_bounds() {
        let jobs = computing(true).jobs(Config::default());
        let job = of(&jobs, 7)[2];
        // Without evidence, all of the time may be overhead; entry and exit around the displacement
        // took as long as those observed.
        assert!(matches!(job.overhead, Bounds::Between { lo: 0, hi } if hi > 300_000), "{:?}", job.overhead);
        let likely = job.likely_overhead.unwrap();
        assert!((5_000..=20_000).contains(&likely), "{likely}");
        assert!(job.overhead.allows(likely));
        let execution = job.likely_execution().unwrap();
        assert!(job.execution.allows(execution) && job.execution.hi() == Some(execution + likely));
        let printed = explain::job(job, &Names::new()).join("\n");
        assert_eq!(printed.matches("(likely ").count(), 2, "{printed}");
        let object: serde_json::Value = serde_json::from_str(&json(job, &Names::new())).unwrap();
        assert_eq!(object["terms"]["SS"]["likely_ns"], likely);
        assert!(object["terms"]["R"].get("likely_ns").is_none());
    }

    #[test]
    fn marks_likely_values_as_uncertain() {
        let mut watch = Watch::new(Config::default(), 1);
        computing(true).events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        let control = watch.tasks().iter().find(|task| task.jobs() == 3 && task.likely().is_some()).unwrap();
        assert!(explain::assumptions(control)[0].starts_with("Likely, not certain: SS at most"));
    }

    /// Without evidence of the scheduler's duration, there is no likely value either.
    #[test]
    fn gives_no_likely_value_without_evidence() {
        let mut s = Script::new();
        s.waking(1_000, 0, CONTROL, 0).switch(2_000, 0, Runnable, CONTROL).switch(90_000, 0, Sleeping, IDLE);
        assert_eq!(s.jobs(Config::default())[0].likely_overhead, None);
    }

    /// The end of a job that only computes is no evidence of an entry's duration, and certainly not
    /// that it is 0.
    #[test]
    fn jobs_without_events_give_no_evidence() {
        let mut first = Script::new();
        first
            .waking(1_000, 0, CONTROL, 0)
            .switch(2_000, 0, Runnable, CONTROL)
            .switch(90_000, 0, Sleeping, IDLE);
        let after = computing(true).events;
        let both: Vec<_> = first.events.iter().chain(&after).copied().collect();
        let likely =
            |events: &[Event]| of(&jobs(Config::default(), events), 7).last().unwrap().likely_overhead;
        assert_eq!(likely(&both), likely(&after));
    }
}

mod open_jobs {
    //! Jobs that do not end: deadlocks, threads that never sleep, threads that never get a CPU.

    use crate::support::{IDLE, Script, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::event::{Kind, Task};
    use punctual_trace::jobs::{Actor, Bounds, Config, Decomposer, Flaw, Job, JobKind, Select};
    use punctual_trace::names::Names;
    use punctual_trace::stats::{Key, Watch};
    use punctual_trace_report::explain;
    use punctual_trace_report::export::json;

    const HIGH: Task = task(7, 10);
    const LOW: Task = task(9, 30);
    const HOG: Task = task(5, 50);

    /// HIGH waits for a lock of LOW, which does not release it before 9 000.
    fn deadlock() -> Script {
        let mut s = Script::new();
        s.waking(100, 1, LOW, 1).switch(110, 1, Runnable, LOW);
        s.waking(200, 0, HIGH, 0).switch(210, 0, Runnable, HIGH);
        s.at(300, 0, Kind::FutexEnter { word: 0x1000, operation: 6 | 128, value: 0 });
        s.at(305, 0, Kind::Inherit { task: 9, old: 30, new: 10 }).switch(310, 0, Sleeping, IDLE);
        s
    }

    fn unended(events: &Script, select: Select) -> Vec<Job> {
        let mut decomposer = Decomposer::new(Config { select, ..Config::default() });
        let mut jobs = Vec::new();
        events.events.iter().for_each(|event| decomposer.feed(event, &mut |job| jobs.push(job.clone())));
        assert!(jobs.is_empty(), "{jobs:?}");
        decomposer.finish(&mut |job| jobs.push(job.clone()));
        assert_eq!(decomposer.counters().flawed, jobs.len() as u64);
        jobs
    }

    #[test]
    fn raises_alarm_while_job_lasts_and_when_it_ends() {
        let mut watch = Watch::new(Config::default(), 1);
        watch.default_deadline(Some(1_000));
        let mut script = deadlock();
        script
            .events
            .iter()
            .for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| panic!("nothing has ended")));
        let mut overdue = |now| {
            let mut alarms = Vec::new();
            watch.overdue(now, &mut |late| alarms.push(late.job.clone()));
            alarms.into_iter().filter(|job| job.actor == Actor::Thread(7)).collect::<Vec<_>>()
        };
        assert!(overdue(1_100).is_empty());
        let late = overdue(1_300);
        assert_eq!(
            (late.len(), late[0].response, late[0].flaw),
            (1, Bounds::AtLeast(1_100), Some(Flaw::Cut))
        );
        assert_eq!(
            (late[0].blocking, late[0].blockings[0].owners.as_slice()),
            (Bounds::AtLeast(1_000), &[9][..])
        );
        assert!(overdue(5_000).is_empty(), "once is enough");
        let printed = explain::job(&late[0], &Names::new());
        assert!(
            printed[0].starts_with("It had not ended;") && printed[1].contains("at least 1.1 µs"),
            "{printed:?}"
        );

        let fed = script.events.len();
        script.waking(9_000, 1, HIGH, 0).switch(9_010, 0, Runnable, HIGH);
        script.at(9_020, 0, Kind::FutexExit { result: 0 }).switch(9_100, 0, Sleeping, IDLE);
        let mut ends = Vec::new();
        for event in &script.events[fed..] {
            watch.feed(event, &mut |_| {}, &mut |late| ends.push(late.job.response));
        }
        assert_eq!(ends, [Bounds::Exact(8_900)]);
    }

    #[test]
    fn returns_open_jobs_with_terms_so_far() {
        let jobs = unended(deadlock().at(2_000, 1, Kind::IrqEntry { irq: 1 }), Select::real_time());
        assert_eq!(jobs.len(), 2);
        let high = jobs.iter().find(|job| job.actor == Actor::Thread(7)).unwrap();
        assert_eq!((high.response, high.jitter), (Bounds::AtLeast(1_800), Bounds::Exact(10)));
        assert_eq!((high.window, high.blocking), (Bounds::AtLeast(1_790), Bounds::AtLeast(1_700)));
        let object: serde_json::Value = serde_json::from_str(&json(high, &Names::new())).unwrap();
        assert_eq!((&object["flaw"], &object["terms"]["R"]["min_ns"]), (&"cut".into(), &1_800.into()));
        assert!(object["terms"]["R"]["max_ns"].is_null());
    }

    #[test]
    fn returns_job_that_never_ran() {
        let mut s = Script::new();
        s.waking(100, 0, HOG, 0).switch(110, 0, Runnable, HOG);
        s.waking(200, 0, LOW, 0).at(7_000, 0, Kind::IrqEntry { irq: 1 });
        let select = Select::thread(9);
        let jobs = unended(&s, select);
        assert_eq!((jobs.len(), jobs[0].started, jobs[0].flaw), (1, false, Some(Flaw::Cut)));
        assert_eq!((jobs[0].response, jobs[0].jitter), (Bounds::AtLeast(6_800), Bounds::AtLeast(6_800)));
        let who: Vec<_> = jobs[0].jitter_causes.iter().map(|cause| (cause.actor, cause.ns)).collect();
        assert!(who.contains(&(Actor::Thread(5), 6_800)), "{who:?}");
        let printed = explain::job(&jobs[0], &Names::new()).join("\n");
        assert!(printed.contains("it has not run"), "{printed}");
    }

    /// It runs from before the first event until after the last one.
    #[test]
    fn names_thread_that_runs_through_whole_recording() {
        let mut s = Script::new();
        s.switch(100, 0, Sleeping, IDLE);
        s.events.clear();
        for time in [1_000, 2_000, 3_000] {
            let by = HOG.id;
            s.events.push(punctual_trace::event::Event { time, cpu: 0, by, kind: Kind::IrqEntry { irq: 3 } });
            s.events.push(punctual_trace::event::Event {
                time: time + 5,
                cpu: 0,
                by,
                kind: Kind::IrqExit { irq: 3 },
            });
        }
        let jobs = unended(&s, Select::real_time());
        assert_eq!(jobs.len(), 1);
        assert_eq!((jobs[0].actor, jobs[0].response), (Actor::Thread(5), Bounds::AtLeast(2_005)));
        // Its activity is unknown, except that it did not sleep.
        assert_eq!((jobs[0].execution, jobs[0].jitter), (Bounds::Unknown, Bounds::Unknown));
        // Another thread is not selected.
        assert!(unended(&s, Select::thread(7)).is_empty());
    }

    /// A thread displaced occasionally shows its priority, and ordinary ones are not selected.
    #[test]
    fn names_thread_that_never_slept_by_its_priority() {
        let ordinary = task(3, 120);
        let mut s = Script::new();
        s.switch(100, 0, Sleeping, HOG).switch(900, 0, Runnable, ordinary).switch(950, 0, Runnable, HOG);
        s.at(5_000, 0, Kind::IrqEntry { irq: 3 });
        s.events.remove(0);
        let jobs = unended(&s, Select::real_time());
        assert_eq!(jobs.iter().map(|job| job.actor).collect::<Vec<_>>(), [Actor::Thread(5)]);
        assert_eq!(jobs[0].response, Bounds::AtLeast(4_100));
    }

    #[test]
    fn counts_deadline_that_passed_while_job_lasted() {
        let mut watch = Watch::new(Config::default(), 1);
        let key = Key { kind: JobKind::Thread, actor: Actor::Thread(7) };
        watch.deadline(key, 1_000);
        let mut script = deadlock();
        script.at(2_000, 1, Kind::IrqEntry { irq: 1 });
        script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        watch.finish(&mut |_| {});
        let task = watch.tasks().iter().find(|task| task.key() == key).unwrap();
        assert_eq!((task.misses(), task.jobs(), task.unended().len()), (1, 0, 1));
    }
}

mod unseen_beginnings {
    //! Jobs that began before their threads were first seen: the first sleep is followed by a job
    //! only if it was no wait for a lock.

    use crate::support::{IDLE, Script, of, task};
    use punctual_trace::event::SwitchOut::{self, Runnable, Sleeping, Uninterruptible};
    use punctual_trace::event::{Kind, Task};
    use punctual_trace::jobs::{Bounds, Config, Job, Sleeps};

    const HIGH: Task = task(7, 10);
    const MUTEX: u32 = 16;

    /// HIGH runs when the recording begins, acts, sleeps and is woken twice.
    fn running(does: &[Kind], sleeps: SwitchOut, then: &[Kind]) -> Script {
        let mut s = Script::new();
        s.switch(50, 0, Runnable, HIGH);
        s.events.clear();
        s.at(90, 0, Kind::IrqEntry { irq: 1 }).at(95, 0, Kind::IrqExit { irq: 1 });
        does.iter().for_each(|&kind| _ = s.at(100, 0, kind));
        s.switch(110, 0, sleeps, IDLE);
        s.waking(300, 0, HIGH, 0).switch(310, 0, Runnable, HIGH);
        then.iter().for_each(|&kind| _ = s.at(320, 0, kind));
        s.switch(500, 0, Sleeping, IDLE);
        s.waking(1_000, 0, HIGH, 0).switch(1_020, 0, Runnable, HIGH).switch(1_100, 0, Sleeping, IDLE);
        s
    }

    fn found(script: &Script, config: Config) -> Vec<Job> {
        of(&script.jobs(config), 7).into_iter().cloned().collect()
    }

    /// No statement about the rest of a job would be wrong for the whole, and the next one is known
    /// again.
    #[test]
    fn rest_of_job_is_not_a_job() {
        let futex = Kind::FutexEnter { word: 0x1000, operation: 128, value: 2 };
        let contention = Kind::ContentionBegin { lock: 0x2000, flags: MUTEX };
        let acquired = Kind::ContentionEnd { lock: 0x2000 };
        let end = Bounds::AtLeast(10);
        let waits: [(&[Kind], SwitchOut, &[Kind], Bounds); 3] = [
            (&[futex], Sleeping, &[Kind::FutexExit { result: 0 }], end),
            (&[contention], Sleeping, &[acquired], end),
            (&[], Uninterruptible, &[], Bounds::Unknown),
        ];
        for (does, sleeps, then, blocking) in waits {
            let jobs = found(&running(does, sleeps, then), Config::default());
            let (rest, next) = (&jobs[0], &jobs[1]);
            assert!(jobs.len() == 2 && rest.complete() && next.complete(), "{does:?}: {jobs:#?}");
            assert_eq!((rest.response, rest.jitter), (Bounds::AtLeast(190), Bounds::Unknown), "{does:?}");
            assert_eq!((rest.window, rest.execution), (Bounds::AtLeast(190), Bounds::Unknown), "{does:?}");
            assert_eq!((rest.blocking, rest.overhead), (blocking, Bounds::Unknown), "{does:?}");
            assert_eq!((next.response, next.jitter), (Bounds::Exact(100), Bounds::Exact(20)), "{does:?}");
        }
    }

    /// A sleep for another reason ends the unseen job.
    #[test]
    fn recognizes_job_after_sleep() {
        let condition = Kind::FutexEnter { word: 0x1000, operation: 128, value: 7 };
        for (does, then) in [(&[][..], &[][..]), (&[condition], &[Kind::FutexExit { result: 0 }])] {
            let jobs = found(&running(does, Sleeping, then), Config::default());
            assert_eq!(
                (jobs[0].response, jobs[0].jitter),
                (Bounds::Exact(200), Bounds::Exact(10)),
                "{does:?}"
            );
        }
    }

    /// If sleeps are parts of jobs, so is the first one.
    #[test]
    fn rest_of_job_with_sleeps_is_not_a_job() {
        let mut script = running(&[], Sleeping, &[]);
        script.waking(2_000, 0, HIGH, 0).switch(2_010, 0, Runnable, HIGH).switch(
            2_100,
            0,
            SwitchOut::Gone,
            IDLE,
        );
        let jobs = found(&script, Config { sleeps: Sleeps::BelongToJob, ..Config::default() });
        assert_eq!(jobs.iter().map(|job| job.window).collect::<Vec<_>>(), [Bounds::AtLeast(1_790)]);
    }
}

mod scheduler_habits {
    //! Events between the scheduler's entry and exit that look as if a thread had left it.
    //!
    //! Each scene runs with and without entry and exit events. The exact values with them have to
    //! lie within the bounds without them.

    use crate::support::{IDLE, Script, jobs, of, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::event::{Event, Kind, Task};
    use punctual_trace::jobs::{Actor, Bounds, Config, Job};

    const HIGH: Task = task(7, 10);
    const LOW: Task = task(9, 30);
    const MIGRATION: Task = task(20, 0);
    const KSOFTIRQD: Task = task(21, 120);
    /// `LCB_F_SPIN`
    const RUN_QUEUE: Kind = Kind::ContentionBegin { lock: 0xff00, flags: 1 };
    const HAS_RUN_QUEUE: Kind = Kind::ContentionEnd { lock: 0xff00 };
    /// `LCB_F_MUTEX`
    const MUTEX: Kind = Kind::ContentionBegin { lock: 0xaa00, flags: 32 };
    const HAS_MUTEX: Kind = Kind::ContentionEnd { lock: 0xaa00 };

    /// A thread has been switched in at 100 and left the scheduler at 120.
    fn scene() -> Script {
        let mut s = Script::new();
        s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH).scheduled(120, 0);
        s
    }

    /// Returns the first job with the entry and exit events, and without.
    fn both(s: &Script) -> [Job; 2] {
        let is_call = |event: &&Event| matches!(event.kind, Kind::ScheduleEnter | Kind::ScheduleExit);
        let without: Vec<_> = s.events.iter().filter(|event| !is_call(event)).copied().collect();
        let config = Config { segments: true, ..Config::default() };
        let both = [s.jobs(config.clone()), jobs(config, &without)].map(|jobs| of(&jobs, 7)[0].clone());
        let [with, without] = &both;
        assert!(with.complete() && without.complete());
        let exact = |value: Bounds| if let Bounds::Exact(ns) = value { ns } else { panic!("{value:?}") };
        assert!(without.overhead.allows(exact(with.overhead)), "{:?} {:?}", with.overhead, without.overhead);
        assert!(
            without.execution.allows(exact(with.execution)),
            "{:?} {:?}",
            with.execution,
            without.execution
        );
        both
    }

    #[test]
    fn counts_run_queue_contention_as_scheduling() {
        let mut s = scene();
        s.at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0);
        s.at(520, 0, RUN_QUEUE).at(550, 0, HAS_RUN_QUEUE).switch(560, 0, Sleeping, IDLE);
        let [with, without] = both(&s);
        assert_eq!((with.overhead_exit, with.blocking), (Bounds::Exact(20), Bounds::Exact(30)));
        assert_eq!(without.overhead_exit, Bounds::Between { lo: 0, hi: 30 });

        // A mutex that it does not acquire.
        let mut s = scene();
        s.at(500, 0, Kind::SyscallEnter { number: 1 }).at(520, 0, MUTEX).at(550, 0, HAS_MUTEX);
        s.schedule(555, 0).switch(560, 0, Sleeping, IDLE);
        assert_eq!(both(&s)[1].overhead_exit, Bounds::Between { lo: 0, hi: 10 });
    }

    #[test]
    fn counts_interrupts_in_scheduler_as_interference() {
        let mut s = scene();
        s.at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0);
        s.at(520, 0, Kind::VectorEntry { vector: 253 }).at(522, 0, Kind::VectorExit { vector: 253 });
        s.switch(560, 0, Sleeping, IDLE);
        let [with, without] = both(&s);
        assert_eq!(with.overhead_exit, Bounds::Exact(48));
        assert_eq!(without.overhead_exit, Bounds::Between { lo: 0, hi: 58 });
    }

    #[test]
    fn ignores_wake_ups_of_migration_threads_in_scheduler() {
        let mut s = Script::new();
        s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH).waking(110, 0, MIGRATION, 1);
        s.scheduled(120, 0).at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0);
        s.switch(560, 0, Sleeping, IDLE);
        let [with, without] = both(&s);
        assert_eq!(with.overhead_entry, Bounds::Exact(20));
        assert_eq!(without.overhead_entry, Bounds::Between { lo: 0, hi: 400 });
    }

    #[test]
    fn wake_ups_after_handler_prove_nothing() {
        let mut s = Script::new();
        s.waking(90, 0, HIGH, 0).switch(100, 0, Runnable, HIGH);
        s.at(104, 0, Kind::VectorEntry { vector: 236 }).at(107, 0, Kind::VectorExit { vector: 236 });
        s.waking(110, 0, KSOFTIRQD, 0).scheduled(120, 0);
        s.at(500, 0, Kind::SyscallEnter { number: 1 }).schedule(510, 0).switch(560, 0, Sleeping, IDLE);
        let [with, without] = both(&s);
        assert_eq!(with.overhead_entry, Bounds::Exact(17));
        assert_eq!(without.overhead_entry, Bounds::Between { lo: 0, hi: 397 });
    }

    #[test]
    fn attributes_contention_after_switch_event_to_leaving_thread() {
        let mut s = scene();
        s.schedule(510, 0).switch(560, 0, Sleeping, LOW);
        // The CPU still belongs to the old thread.
        for (time, kind) in [(562, RUN_QUEUE), (565, HAS_RUN_QUEUE)] {
            s.events.push(Event { time, cpu: 0, by: HIGH.id, kind });
        }
        s.scheduled(580, 0).waking(600, 0, HIGH, 0).schedule(605, 0).switch(610, 0, Runnable, HIGH);
        s.scheduled(620, 0).schedule(700, 0).switch(720, 0, Sleeping, IDLE);
        both(&s);
        let jobs = s.jobs(Config::default());
        let high = of(&jobs, 7);
        assert!(jobs.iter().all(|job| job.complete()));
        assert_eq!(high.iter().map(|job| job.overhead).collect::<Vec<_>>(), [70, 30].map(Bounds::Exact));
        assert_eq!(
            high[1].jitter_causes.iter().map(|cause| cause.actor).collect::<Vec<_>>(),
            [Actor::Thread(9)]
        );
    }
}
