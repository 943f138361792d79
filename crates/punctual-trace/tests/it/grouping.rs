//! Tasks, the releases and calls among their jobs, and the jobs that are captured.

mod chains {
    //! Chains of tasks: exactly the critical path.

    use crate::support::{IDLE, Script, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::event::{Kind, Task, Tid};
    use punctual_trace::jobs::{Actor, Bounds, Config, Job, Phase};
    use punctual_trace::names::Names;
    use punctual_trace_report::chains::{Chain, Finder};
    use punctual_trace_report::explain;

    const IRQ: Task = task(24, 5);
    const READER: Task = task(7, 20);
    const CONTROL: Task = task(8, 10);
    const OTHER: Task = task(9, 15);

    /// An interrupt thread wakes the reader, which wakes the control loop and continues while that
    /// runs on another CPU.
    fn crossing(s: &mut Script, t: u64) {
        s.at(t, 0, Kind::IrqEntry { irq: 24 }).waking(t + 2, 0, IRQ, 0).at(
            t + 5,
            0,
            Kind::IrqExit { irq: 24 },
        );
        s.switch(t + 12, 0, Runnable, IRQ);
        s.waking(t + 30, 0, READER, 0);
        s.switch(t + 40, 0, Sleeping, READER);
        // Another thread displaces the reader before it wakes the next.
        s.waking(t + 100, 0, OTHER, 0).switch(t + 105, 0, Runnable, OTHER).switch(
            t + 155,
            0,
            Sleeping,
            READER,
        );
        s.waking(t + 200, 0, CONTROL, 1);
        s.switch(t + 220, 1, Runnable, CONTROL).switch(t + 300, 1, Sleeping, IDLE);
        s.waking(t + 310, 0, OTHER, 0).switch(t + 315, 0, Runnable, OTHER).switch(
            t + 415,
            0,
            Sleeping,
            READER,
        );
        s.switch(t + 500, 0, Sleeping, IDLE);
    }

    fn chain(jobs: &[Job], threads: &[Tid]) -> Chain {
        let mut chain = Chain::new(threads.len());
        for job in jobs {
            chain.job(job, |stage| job.actor == Actor::Thread(threads[stage]), &mut |_| {});
        }
        chain
    }

    fn jobs(s: &Script) -> Vec<Job> {
        s.jobs(Config { segments: true, ..Config::default() })
    }

    #[test]
    fn stages_sum_to_response() {
        let mut s = Script::new();
        crossing(&mut s, 1_000);
        let chain = chain(&jobs(&s), &[24, 7, 8]);
        let longest = &chain.longest()[0];
        assert_eq!(longest.latency, Bounds::Exact(300 - 2));
        assert_eq!(longest.stages.iter().map(|stage| stage.ns()).collect::<Vec<_>>(), [28, 170, 100]);
        for stage in &longest.stages {
            assert_eq!(stage.parts.iter().map(|part| part.ns).sum::<u64>(), stage.ns(), "{stage:?}");
        }
        let reader = &longest.stages[1];
        assert_eq!(
            (reader.part(Phase::Jitter), reader.part(Phase::Interference)),
            (10, 50),
            "not the 100 after it"
        );
        assert_eq!((chain.latency().max, chain.latency().count, chain.unmatched()), (298, 1, 0));
    }

    #[test]
    fn explains_delay_of_each_stage() {
        let mut s = Script::new();
        crossing(&mut s, 1_000);
        let chain = chain(&jobs(&s), &[24, 7, 8]);
        let mut names = Names::new();
        let named = [(24, "irq/24-eth0"), (7, "reader"), (8, "control"), (9, "other")];
        named.into_iter().for_each(|(tid, name)| names.thread(tid, name));
        let sentences = explain::crossing(&chain.longest()[0], &names);
        assert_eq!(sentences.len(), 3);
        assert_eq!(
            sentences[1],
            "reader/7 took 170 ns (57 %) until it woke control/8: C or SS 110 ns, I 50 ns, J 10 ns; before it ran, irq/24-eth0/24 took \
             10 ns of the CPU; displaced by other/9 for 150 ns until its end."
        );
    }

    #[test]
    fn counts_jobs_woken_from_outside_the_chain() {
        let mut s = Script::new();
        crossing(&mut s, 1_000);
        // Once by an interrupt, once by a thread outside the chain.
        s.at(2_000, 1, Kind::IrqEntry { irq: 3 }).waking(2_002, 1, CONTROL, 1).at(
            2_005,
            1,
            Kind::IrqExit { irq: 3 },
        );
        s.switch(2_010, 1, Runnable, CONTROL).switch(2_100, 1, Sleeping, IDLE);
        s.waking(2_200, 0, OTHER, 0).switch(2_210, 0, Runnable, OTHER).waking(2_220, 0, CONTROL, 1);
        s.switch(2_230, 1, Runnable, CONTROL)
            .switch(2_300, 1, Sleeping, IDLE)
            .switch(2_310, 0, Sleeping, IDLE);
        crossing(&mut s, 3_000);
        let chain = chain(&jobs(&s), &[7, 8]);
        assert_eq!((chain.latency().count, chain.unmatched()), (2, 2));
    }

    #[test]
    fn omits_crossings_with_lost_events() {
        let mut s = Script::new();
        crossing(&mut s, 1_000);
        crossing(&mut s, 2_000);
        let at = s.events.iter().position(|event| event.time == 2_155).unwrap();
        let lost = punctual_trace::event::Event { kind: Kind::Lost { count: 3 }, ..s.events[at] };
        s.events.insert(at, lost);
        let chain = chain(&jobs(&s), &[7, 8]);
        assert_eq!((chain.latency().count, chain.flawed() + chain.unmatched()), (1, 1));
    }

    #[test]
    fn infers_chains_from_wakeups() {
        let mut s = Script::new();
        (1..6).for_each(|n| crossing(&mut s, n * 1_000));
        let mut finder = Finder::default();
        jobs(&s).iter().for_each(|job| finder.job(job));
        assert_eq!(finder.chains(), [vec![24, 7, 8], vec![24, 7, 9]]);
        assert!(Finder::default().chains().is_empty());
    }

    /// Jobs in any order: memory stays bounded and nothing fails.
    #[test]
    fn survives_inconsistent_jobs() {
        let mut s = Script::new();
        (1..60).for_each(|n| crossing(&mut s, n * 1_000));
        let mut jobs = jobs(&s);
        jobs.reverse();
        let jobs: Vec<Job> = jobs.iter().cycle().take(2_000).cloned().collect();
        let same = chain(&jobs, &[7, 7, 7]);
        assert!(same.latency().count <= 2_000);
        let none = chain(&jobs, &[]);
        assert_eq!(none.latency().count, 0);
    }
}

mod nested_marks {
    //! Jobs that an app marks, calling others on the same thread, with interference by other
    //! threads and handlers.

    use crate::support::{IDLE, Script, jobs, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::event::{Kind, Task};
    use punctual_trace::jobs::{Actor, Bounds, Cause, Config, Flaw, Job};
    use punctual_trace::recorded::Recorded;
    use punctual_trace::stats::Watch;

    const WORKER: Task = task(7, 40);
    const HIGHER: Task = task(8, 30);

    fn start(task: u16, released: u64) -> Kind {
        Kind::JobStart { task, released }
    }

    fn end(task: u16) -> Kind {
        Kind::JobEnd { task }
    }

    fn config() -> Config {
        Config { monotonic: true, segments: true, ..Config::default() }
    }

    fn of(jobs: &[Job], task: u16) -> Vec<&Job> {
        jobs.iter().filter(|job| job.task == Some(task)).collect()
    }

    fn cause(actor: Actor, ns: u64, times: u32) -> Cause {
        Cause { actor, ns, times }
    }

    /// The worker runs task 1, which calls task 2, which calls task 3. Each is displaced by a
    /// thread or an interrupt.
    fn nest() -> Script {
        let mut s = Script::new();
        s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER).at(120, 0, start(1, 90));
        s.at(150, 0, start(2, 140));
        s.waking(160, 0, HIGHER, 0).switch(170, 0, Runnable, HIGHER);
        s.switch(200, 0, Sleeping, WORKER);
        s.at(210, 0, start(3, 205)).at(220, 0, Kind::IrqEntry { irq: 5 }).at(
            235,
            0,
            Kind::IrqExit { irq: 5 },
        );
        s.at(250, 0, end(3)).at(270, 0, end(2));
        s.at(280, 0, Kind::IrqEntry { irq: 5 }).at(290, 0, Kind::IrqExit { irq: 5 });
        s.at(300, 0, end(1)).switch(310, 0, Sleeping, IDLE);
        s
    }

    /// If a recording declares a thread's calls, this also applies to the jobs that its jobs call.
    #[test]
    fn attributes_waits_of_called_jobs_to_callers() {
        let recorded = Recorded::declared(
            "sched:sched_switch\nsched:sched_waking\nlock:contention_begin\nlock:contention_end\n\
             syscalls:sys_enter_futex\nsyscalls:sys_exit_futex\ncalls of 7\n",
        );
        let jobs = nest().jobs(Config { recorded, ..config() });
        for task in [1, 2, 3] {
            assert_eq!(of(&jobs, task)[0].blocking, Bounds::Exact(0), "task {task}");
        }
    }

    #[test]
    fn counts_called_job_only_as_interference_of_caller() {
        let jobs = nest().jobs(config());
        let tasks: Vec<_> = jobs.iter().filter_map(|job| job.task).collect();
        assert_eq!(tasks, [3, 2, 1]);
        let terms = |task: u16| {
            let job = of(&jobs, task)[0];
            (job.jitter, job.window, job.interference, job.interference_causes.clone())
        };
        let (irq, thread) = (Actor::Irq(5), Actor::Thread(8));
        assert_eq!(
            terms(3),
            (Bounds::Exact(5), Bounds::Exact(40), Bounds::Exact(15), vec![cause(irq, 15, 1)])
        );
        assert_eq!(
            terms(2),
            (
                Bounds::Exact(10),
                Bounds::Exact(120),
                Bounds::Exact(70),
                vec![cause(thread, 30, 1), cause(Actor::Task(3), 40, 1)]
            )
        );
        // Displacement of the jobs it called is part of their time, and so belongs to the called
        // task.
        assert_eq!(
            terms(1),
            (
                Bounds::Exact(20),
                Bounds::Exact(190),
                Bounds::Exact(130),
                vec![cause(Actor::Task(2), 120, 1), cause(irq, 10, 1)]
            )
        );
        // The segments of each are contiguous from release to end.
        for job in jobs.iter().filter(|job| job.task.is_some()) {
            let mut at = job.released.unwrap().0;
            for segment in &job.segments {
                assert_eq!(segment.start, at, "{job:?}");
                at = segment.end;
            }
            assert_eq!(at, job.end);
        }
    }

    /// A worker is not woken for a job that was spawned while it was awake. The activity of its CPU
    /// since then is captured with the job.
    #[test]
    fn keeps_events_since_release_of_queued_job() {
        let mut s = Script::new();
        s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER).at(120, 0, start(1, 90));
        s.at(140, 0, Kind::IrqEntry { irq: 24 }).at(150, 0, Kind::IrqExit { irq: 24 }).at(200, 0, end(1));
        s.at(205, 0, start(2, 130)).at(400, 0, end(2)).switch(450, 0, Sleeping, IDLE);
        let mut watch = Watch::new(config(), 1);
        s.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        let queued = watch.tasks().iter().find(|task| task.key().actor == Actor::Task(2)).unwrap();
        assert_eq!(queued.worst()[0].events[0].time, 140);
    }

    #[test]
    fn attributes_queueing_delay_to_work_of_the_cpu() {
        let mut s = Script::new();
        s.waking(100, 0, WORKER, 0).switch(110, 0, Runnable, WORKER).at(120, 0, start(1, 90));
        // Spawned at 130, it waits for the end of the other and is displaced before it begins.
        s.waking(150, 0, HIGHER, 0).switch(160, 0, Runnable, HIGHER);
        s.switch(180, 0, Sleeping, WORKER).at(200, 0, end(1)).at(205, 0, start(2, 130)).at(240, 0, end(2));
        s.switch(250, 0, Sleeping, IDLE);
        let jobs = s.jobs(config());
        let queued = of(&jobs, 2)[0];
        assert_eq!((queued.jitter, queued.response), (Bounds::Exact(75), Bounds::Exact(110)));
        let mut causes = queued.jitter_causes.clone();
        causes.sort_by_key(|cause| cause.actor);
        assert_eq!(causes, [cause(Actor::Thread(7), 55, 2), cause(Actor::Thread(8), 20, 1)]);
    }

    #[test]
    fn flags_only_jobs_touched_by_lost_end() {
        let lose = |lost: Kind| {
            let mut events = nest().events;
            let next = events.iter().position(|event| event.kind == lost).unwrap();
            events.remove(next);
            // The same again, later, without losses.
            let again = nest().events.into_iter().map(|mut event| {
                event.time += 1_000;
                if let Kind::JobStart { released, .. } = &mut event.kind {
                    *released += 1_000;
                }
                event
            });
            events.extend(again);
            jobs(config(), &events)
        };
        // The caller's end ends the jobs it called; its own caller has lost only the accounting of
        // that.
        let without = lose(end(3));
        assert_eq!(of(&without, 3)[0].flaw, Some(Flaw::Contradiction));
        assert_eq!(of(&without, 2)[0].flaw, Some(Flaw::Contradiction));
        assert_eq!(of(&without, 1)[0].flaw, None);
        // The outermost one ends only with the next job of its task.
        let without = lose(end(1));
        let first = of(&without, 1);
        assert_eq!((first.len(), first[0].flaw), (2, Some(Flaw::Contradiction)));
        for jobs in [&without, &lose(end(3)), &lose(end(2)), &lose(start(3, 205))] {
            let last = |task| of(jobs, task).last().map(|job| (job.jitter, job.start)).unwrap();
            assert_eq!((last(3).0, last(2).0), (Bounds::Exact(5), Bounds::Exact(10)));
            assert_eq!((last(3).1, last(2).1), (1_210, 1_150));
            assert!(of(jobs, 1).len() == 2 && of(jobs, 2).len() == 2, "{jobs:?}");
        }
    }

    #[test]
    fn cuts_all_nested_jobs_at_end_of_trace() {
        let script = nest();
        let mut decomposer = punctual_trace::jobs::Decomposer::new(config());
        let mut cut = Vec::new();
        let before = script.events.iter().take_while(|event| event.kind != end(3));
        before.for_each(|event| decomposer.feed(event, &mut |job| assert_eq!(job.task, None)));
        decomposer.finish(&mut |job| cut.push((job.task, job.flaw, job.check())));
        let expected = [3, 2, 1].map(|task| (Some(task), Some(Flaw::Cut), Ok(())));
        assert_eq!(cut, expected);
    }
}

mod sample {
    //! In addition to the worst jobs, some ordinary ones are captured, evenly spaced over the whole
    //! recording.

    use crate::support::{IDLE, Script, task};
    use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
    use punctual_trace::jobs::Config;
    use punctual_trace::stats::Watch;

    fn watched(jobs: u64, sample: usize) -> Watch {
        let mut script = Script::new();
        let thread = task(7, 10);
        for job in 0..jobs {
            let t = 1_000_000 * (job + 1);
            script.waking(t, 0, thread, 0).switch(t + 1_000, 0, Runnable, thread);
            script.switch(t + 9_000 + job % 13, 0, Sleeping, IDLE);
        }
        let mut watch = Watch::new(Config { segments: true, ..Config::default() }, 2);
        watch.sample(sample);
        script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        watch
    }

    #[test]
    fn spreads_sample_evenly_over_jobs() {
        for jobs in [1, 5, 8, 9, 100, 5_000] {
            let watch = watched(jobs, 8);
            let sample = watch.tasks()[0].sampled();
            let count = sample.len() as u64;
            assert!(count <= 8 && count >= jobs.min(4), "{count} of {jobs}");
            let ends: Vec<u64> = sample.iter().map(|captured| captured.job.end / 1_000_000).collect();
            let apart: Vec<u64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert_eq!(ends[0], 1, "the first job is in it");
            assert!(apart.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?}");
            // Until the next one would be in it.
            assert!(
                jobs - ends[ends.len() - 1] < apart.first().copied().unwrap_or(1).max(1),
                "{ends:?} of {jobs}"
            );
            assert!(sample.iter().all(|captured| captured.events.len() >= 3 && !captured.truncated));
        }
    }

    #[test]
    fn keeps_no_sample_unless_asked() {
        assert!(watched(100, 0).tasks()[0].sampled().is_empty());
    }
}

mod tasks {
    //! Grouping of jobs into tasks.

    use crate::support::{IDLE, Script, task};
    use punctual_trace::event::SwitchOut::{Gone, Runnable, Sleeping};
    use punctual_trace::event::{Comm, Event, Kind, Task};
    use punctual_trace::jobs::{Actor, Config, Counters, Decomposer, Select};
    use punctual_trace::names::Names;
    use punctual_trace::stats::{Term, Watch};

    const CONTROL: Task = task(7, 10);
    const BEFORE: Task = task(7, 120);

    fn job(s: &mut Script, start: u64, task: Task, length: u64) {
        s.waking(start, 0, task, 0).switch(start + 10, 0, Runnable, task);
        s.switch(start + length, 0, Sleeping, IDLE);
    }

    /// Result of a watch: for each task the thread's reuse count, whether it is ordinary, its jobs
    /// and the longest of them.
    fn found(select: Select, script: &Script) -> Vec<(u32, bool, u64, u64)> {
        let mut watch = Watch::new(Config { select, ..Config::default() }, 1);
        watch.name(7, "control");
        script.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        let tasks = watch.tasks().iter();
        tasks
            .map(|task| {
                (task.id().incarnation, task.id().ordinary, task.jobs(), task.summary(Term::Response).max)
            })
            .collect()
    }

    /// A thread starts at an ordinary priority, and returns to it.
    #[test]
    fn every_selection_gives_same_jobs_of_task() {
        let mut s = Script::new();
        for (time, task, length) in [
            (1_000, BEFORE, 8_187),
            (20_000, CONTROL, 2_918),
            (40_000, CONTROL, 500),
            (60_000, BEFORE, 9_000),
        ] {
            job(&mut s, time, task, length);
        }
        let real_time = (0, false, 2, 2_918);
        assert_eq!(found(Select::real_time(), &s), [real_time]);
        let ordinary = (0, true, 2, 9_000);
        for select in [Select::thread(7), Select { names: vec!["control".into()], ..Select::default() }] {
            assert_eq!(found(select, &s), [ordinary, real_time]);
        }
    }

    #[test]
    fn distinguishes_threads_with_reused_id() {
        let mut s = Script::new();
        let mut watch = Watch::new(Config::default(), 1);
        for incarnation in 0..10 {
            let start = 1_000 + incarnation * 10_000;
            s.at(start, 0, Kind::Wakeup { task: CONTROL, cpu: 0, new: true }).switch(
                start + 10,
                0,
                Runnable,
                CONTROL,
            );
            s.switch(start + 100 + incarnation, 0, Sleeping, IDLE);
            s.waking(start + 1_000, 0, CONTROL, 0).switch(start + 1_010, 0, Runnable, CONTROL);
            s.switch(start + 2_000 + incarnation, 0, Gone, IDLE);
        }
        let mut names = Names::new();
        for (index, event) in s.events.iter().enumerate() {
            if index % 6 == 1 {
                let name = Comm::new(&format!("worker-{}", index / 6));
                let named = Event { kind: Kind::Named { thread: 7, name }, ..*event };
                names.see(&named);
                watch.feed(&named, &mut |_| {}, &mut |_| {});
            }
            watch.feed(event, &mut |_| {}, &mut |_| {});
        }
        let tasks = watch.tasks();
        assert_eq!(tasks.len(), 10);
        for (incarnation, task) in (0..).zip(tasks) {
            assert_eq!((task.jobs(), task.id().incarnation), (2, incarnation));
            assert_eq!(task.summary(Term::Response).max, 1_000 + u64::from(incarnation));
            assert_eq!(task.names(&names).of(Actor::Thread(7)), format!("worker-{incarnation}/7"));
        }
    }

    #[test]
    fn keeps_range_of_job_priorities() {
        let mut s = Script::new();
        for (time, priority) in [(1_000, 40), (20_000, 10), (40_000, 60)] {
            job(&mut s, time, task(7, priority), 500);
        }
        let mut watch = Watch::new(Config::default(), 1);
        s.events.iter().for_each(|event| watch.feed(event, &mut |_| {}, &mut |_| {}));
        assert_eq!(watch.tasks().len(), 1);
        assert_eq!(watch.tasks()[0].priorities(), Some((10, 60)));
    }

    #[test]
    fn does_not_count_gaps_as_events() {
        let mut decomposer = Decomposer::new(Config::default());
        for (time, kind) in
            [(1, Kind::IrqEntry { irq: 1 }), (2, Kind::Lost { count: 7 }), (3, Kind::IrqExit { irq: 1 })]
        {
            decomposer.feed(&Event { time, cpu: 0, by: 0, kind }, &mut |_| {});
        }
        let Counters { events, gaps, .. } = decomposer.counters();
        assert_eq!((events, gaps), (2, 1));
    }
}

mod timers {
    //! Jobs released by timers, among many other timers.

    use crate::support::{IDLE, Script, task};
    use punctual_trace::event::{Kind, SwitchOut};
    use punctual_trace::jobs::{Bounds, Config, Decomposer, ReleasedBy, Select};

    const JOBS: u64 = 1_000;
    /// A timer on the stack of the thread, and those of other sleeping threads.
    const OWN: u64 = 0xffff_c900_0000_3e48;

    fn other(n: u64) -> u64 {
        OWN + (1 + n) * 0x4000
    }

    /// A thread that sleeps until each millisecond, while `others` other threads sleep as often.
    fn scene(others: u64) -> Script {
        let thread = task(7, 10);
        let mut s = Script::new();
        (0..others).for_each(|n| _ = s.at(1, 1, Kind::TimerStart { timer: other(n), expires: 1 << 40 }));
        for job in 1..=JOBS {
            let due = 1_000_000 * job;
            s.at(due - 900_000, 0, Kind::TimerStart { timer: OWN, expires: due });
            for n in (job - 1..others).step_by(JOBS as usize) {
                s.at(due - 500_000, 1, Kind::TimerStart { timer: other(n), expires: 1 << 41 });
            }
            s.at(due + 300, 0, Kind::VectorEntry { vector: 236 });
            s.at(due + 400, 0, Kind::TimerExpire { timer: OWN, now: due + 350 });
            s.waking(due + 500, 0, thread, 0).at(due + 600, 0, Kind::TimerExpired { timer: OWN });
            s.at(due + 700, 0, Kind::VectorExit { vector: 236 });
            s.switch(due + 1_000, 0, SwitchOut::Runnable, thread);
            s.switch(due + 5_000, 0, SwitchOut::Sleeping, IDLE);
        }
        s
    }

    #[test]
    fn finds_every_release_among_100000_timers() {
        let scene = scene(100_000);
        let mut decomposer = Decomposer::new(Config { monotonic: true, ..Config::default() });
        let mut jobs = 0;
        for event in &scene.events {
            decomposer.feed(event, &mut |job| {
                jobs += 1;
                assert_eq!(
                    (job.released_by, job.jitter),
                    (ReleasedBy::Timer, Bounds::Exact(1_000)),
                    "{jobs}"
                );
            });
        }
        assert_eq!((jobs, decomposer.counters().unknown_timers), (JOBS, 0));
    }

    #[test]
    fn counts_timers_without_observed_start() {
        let mut scene = scene(0);
        let mut starts = 0;
        scene.events.retain(|event| {
            starts += u64::from(matches!(event.kind, Kind::TimerStart { .. }));
            !matches!(event.kind, Kind::TimerStart { .. }) || starts % 10 != 0
        });
        let mut decomposer = Decomposer::new(Config { monotonic: true, ..Config::default() });
        let mut timed = 0;
        for event in &scene.events {
            decomposer.feed(event, &mut |job| timed += u64::from(job.released_by == ReleasedBy::Timer));
        }
        assert_eq!((timed, decomposer.counters().unknown_timers), (JOBS - JOBS / 10, JOBS / 10));
    }

    /// The kernel lets timers with slack expire before it is used up, together with others. The
    /// interrupt reads its clock once for all.
    #[test]
    fn timer_within_slack_is_due() {
        let thread = task(7, 120);
        let mut s = Script::new();
        s.at(1_000, 0, Kind::TimerStart { timer: OWN, expires: 150_000 });
        s.at(100_000, 0, Kind::VectorEntry { vector: 236 });
        // Others expired before.
        s.at(115_000, 0, Kind::TimerExpire { timer: OWN, now: 100_700 });
        s.waking(115_500, 0, thread, 0).at(116_000, 0, Kind::TimerExpired { timer: OWN });
        s.at(117_000, 0, Kind::VectorExit { vector: 236 });
        s.switch(118_000, 0, SwitchOut::Runnable, thread).switch(120_000, 0, SwitchOut::Sleeping, IDLE);
        let jobs = s.jobs(Config { monotonic: true, select: Select::thread(7), ..Config::default() });
        assert_eq!((jobs[0].released, jobs[0].jitter), (Some((100_700, 100_700)), Bounds::Exact(17_300)));
    }
}
