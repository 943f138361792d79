//! Hostile events: in any order, with any content. Nothing panics, memory stays bounded, and every
//! reported job adds up or has a flaw.

use punctual_trace::event::{Event, Kind, Noise, Section, SwitchOut, Task};
use punctual_trace::jobs::{Config, FutexWaits, Job, Select, Sleeps};
use punctual_trace::names::Names;
use punctual_trace::stats::Watch;
use punctual_trace_report::explain;
use punctual_trace_report::export::html::{self, About, Collector, Report};
use punctual_trace_report::export::{Csv, Perfetto, captured_job, json};

use crate::random::{Random, inputs};

struct Soup {
    random: Random,
    /// Few threads and CPUs interact often; the whole range finds overflows.
    wide: bool,
    time: u64,
}

impl Soup {
    fn number(&mut self, few: u64) -> u64 {
        if self.wide && self.random.once_in(4) {
            self.random.next() << 16 | self.random.next()
        } else {
            self.random.next() % few
        }
    }

    fn cpu(&mut self) -> u16 {
        self.number(3) as u16
    }

    fn task(&mut self) -> Task {
        let priority = if self.wide { self.number(140) as i32 } else { self.random.next() as i32 % 60 };
        Task { id: self.number(6) as u32, priority }
    }

    fn event(&mut self) -> Event {
        let step = self.number(50);
        self.time = match self.random.next() % 1000 {
            // Back, or a leap.
            0 => self.time.saturating_sub(step),
            1 if self.wide => self.number(10),
            _ => self.time.saturating_add(step % 1000),
        };
        let (time, cpu, by) = (self.time, self.cpu(), self.number(6) as u32);
        Event { time, cpu, by, kind: self.kind() }
    }

    fn kind(&mut self) -> Kind {
        let (task, cpu) = (self.task(), self.cpu());
        let small = self.number(4);
        match self.random.next() % 28 {
            0 => Kind::Waking { task, cpu },
            1 => Kind::Wakeup { task, cpu, new: self.random.once_in(5) },
            2..=6 => {
                let reasons =
                    [SwitchOut::Runnable, SwitchOut::Sleeping, SwitchOut::Uninterruptible, SwitchOut::Gone];
                Kind::Switch { from: task, reason: reasons[(small % 4) as usize], to: self.task() }
            }
            7 => Kind::Migrate { task, from: cpu, to: self.cpu() },
            8 | 9 => Kind::Inherit { task: task.id, old: task.priority, new: self.task().priority },
            10 => Kind::IrqEntry { irq: small as u32 },
            11 => Kind::IrqExit { irq: small as u32 },
            12 => Kind::VectorEntry { vector: small as u16 },
            13 => Kind::VectorExit { vector: small as u16 },
            14 => Kind::SoftirqEntry { softirq: small as u8 },
            15 => Kind::SoftirqExit { softirq: small as u8 },
            16 => Kind::TimerStart { timer: small, expires: self.number(5_000) },
            17 => Kind::TimerExpire { timer: small, now: self.number(5_000) },
            18 => Kind::TimerExpired { timer: small },
            19 => Kind::ContentionBegin { lock: small, flags: 0 },
            20 => Kind::ContentionEnd { lock: small },
            21 => Kind::FutexEnter { word: small, operation: self.number(14) as u32, value: small as u32 },
            22 => Kind::FutexExit { result: 0 },
            23 => [Kind::ScheduleEnter, Kind::ScheduleExit][(small % 2) as usize],
            24 => Kind::JobStart { task: small as u16, released: self.number(5_000) },
            25 => {
                let section = [Section::Interrupts, Section::Preemption][(small % 2) as usize];
                match self.random.once_in(2) {
                    true => Kind::Disable { section, caller: 1 },
                    false => Kind::Enable { section, caller: 2 },
                }
            }
            26 => Kind::Noise { source: Noise::Nmi, ns: self.number(5_000) },
            _ => match small % 5 {
                0 => Kind::JobEnd { task: self.number(4) as u16 },
                1 => Kind::SyscallEnter { number: 1 },
                2 => {
                    let [jitter, window, preempted] = [(); 3].map(|()| self.number(5_000) as u32);
                    let started = self.number(5_000);
                    Kind::OfflineJob { task: small as u16, cpu: 2, started, jitter, window, preempted }
                }
                3 => Kind::OfflineLost { cpu: 2, count: small as u32 },
                _ => Kind::Lost { count: small },
            },
        }
    }
}

fn check(job: &Job) {
    assert!(job.check().is_ok() || !job.complete(), "{job:?}");
    assert!(job.segments.len() <= punctual_trace::jobs::MAX_SEGMENTS);
    assert!(job.interference_causes.len() <= punctual_trace::jobs::MAX_CAUSES + 1);
}

#[test]
fn never_panics_on_random_events() {
    let names = Names::new();
    let (mut jobs, mut timelines) = (0_u64, 0);
    let seeds = inputs(20);
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let config = Config {
            select: Select { priorities: Some(-1..=139), ..Select::default() },
            handlers: random.once_in(2),
            sleeps: if random.once_in(2) { Sleeps::EndJob } else { Sleeps::BelongToJob },
            futex: [FutexWaits::Judged, FutexWaits::Block, FutexWaits::MutexesBlock]
                [random.range(0, 2) as usize],
            monotonic: random.once_in(2),
            segments: true,
            history: 64,
            threads: 256,
            ..Config::default()
        };
        let mut watch = Watch::new(config, 2);
        watch.name(3, "irq/3");
        watch.name(4, "ksoftirqd/0");
        watch.default_deadline(Some(500));
        let mut csv = Csv::new(std::io::sink()).unwrap();
        let mut perfetto = Perfetto::new(std::io::sink()).unwrap();
        let mut collector = Collector::new();
        let mut soup = Soup { random, wide: seed % 2 == 1, time: 0 };
        for _ in 0..20_000 {
            let event = soup.event();
            collector.event(&event);
            perfetto.event(&event, &names, |tid| !tid.is_multiple_of(3)).unwrap();
            let mut each = |job: &Job| {
                check(job);
                collector.job(job);
                jobs += 1;
                if jobs.is_multiple_of(16) {
                    csv.job(job, &names).unwrap();
                    perfetto.job(job, &names).unwrap();
                    assert!(json(job, &names).ends_with('}'));
                    assert!(explain::job(job, &names).len() >= 7);
                    assert!(!explain::longest(job, &names).is_empty());
                }
            };
            watch.feed(&event, &mut each, &mut |_| {});
        }
        watch.finish(&mut check);
        for captured in watch.tasks().iter().flat_map(|task| task.worst()) {
            assert!(explain::system_calls(captured, &names).is_none_or(|calls| calls.ends_with('.')));
            assert!(captured_job(captured, &names).ends_with('}'));
        }
        let about = About::default();
        let report = Report::new(&about, &watch, &collector, &names);
        timelines += html::write(&report, &mut std::io::sink()).unwrap().timelines;
    }
    assert!(jobs > 160 * seeds && timelines > 0, "{jobs}, {timelines}");
}
