//! `punctual trace latency`: bounds the scheduling latency of each CPU, and compares it with the
//! longest observed one.

use std::collections::BTreeMap;

use punctual_analysis::analyze;
use punctual_analysis::arrival::Stream;
use punctual_analysis::infer::system::{Handler, interrupts};
use punctual_analysis::system::{Observed, Partition, System, Task};
use punctual_analysis::time::MAX_TIME;
use punctual_report::format::{format_clock, format_part};
use punctual_report::table::{Cell, Column, Table};
use punctual_report::text::wrapped;
use punctual_trace::event::Kind;
use punctual_trace::jobs::{Actor, Config, Decomposer, Job, JobKind, Select};
use punctual_trace::latency::{Latency, Longest, Terms};
use punctual_trace::names::Names;

use super::args::LatencyArgs;
use super::names::NameWatch;
use super::{FAILED, Failure, open, text};
use crate::output::{message, print};
use crate::rta::trace::observe::Observer;

/// The time from wake-up to switch of a thread that only interrupts and lower threads kept from
/// running.
#[derive(Debug, Clone, Copy)]
struct Seen {
    ns: u64,
    thread: u32,
    at: u64,
}

/// Results for a CPU.
struct Found {
    cpu: u16,
    terms: Terms,
    /// With interrupts; `None` if it is unknown, or there is none.
    bound: Option<u64>,
    seen: Option<Seen>,
}

const LEGEND: &str = "Times in µs. L ≤ max(ST, POID) + PAIE + PSD + interrupts, from the wake-up of the most urgent thread of a CPU by that \
                      CPU to the switch to it (de Oliveira et al. 2020). POID preemption or interrupts disabled, not to schedule; ST from a \
                      switch until they are enabled; PAIE enabled until they are disabled to schedule; PSD disabled to schedule until the \
                      switch; IRQ interrupts during these. NMIs and the host of a virtual machine count as part of what they interrupt.";

pub(crate) fn run(arguments: &LatencyArgs) -> Result<u8, Failure> {
    let path = &arguments.trace;
    let trace = open(path)?;
    let recorded = trace.recorded()?;
    if !recorded.has_all_switches() {
        return Err(Failure::usage(text::needs_all_switches(path, &recorded)));
    }
    let mut decomposer = Decomposer::new(Config {
        select: Select::real_time(),
        handlers: true,
        monotonic: trace.clock() == "mono",
        recorded: recorded.clone(),
        ..Config::default()
    });
    let (mut latency, mut observer) = (Latency::default(), Observer::default());
    let (mut names, mut watch) = (Names::new(), NameWatch::default());
    let mut seen: BTreeMap<u16, Seen> = BTreeMap::new();
    let (mut span, mut sections) = (None, 0_u64);
    let mut events = trace.events()?;
    events.threads().iter().for_each(|(thread, name)| names.thread(thread, &name.text()));
    while let Some(run) = events.next_run() {
        match run {
            Ok(run) => {
                for event in run {
                    names.see(event);
                    span = Some((span.map_or(event.time, |(first, _)| first), event.time));
                    sections += u64::from(matches!(event.kind, Kind::Disable { .. }));
                    latency.feed(event);
                    observer.event(event);
                    decomposer.feed(event, &mut |job| {
                        if let Some((cpu, it)) = waited(job, &observer, &latency)
                            && seen.get(&cpu).is_none_or(|other| it.ns > other.ns)
                        {
                            seen.insert(cpu, it);
                        }
                        observer.job(job);
                    });
                }
            }
            Err(problem) => message!("warning: {problem}"),
        }
        if let Some(news) = watch.news(&events) {
            news.irqs.iter().for_each(|(irq, name)| names.irq(*irq, name));
            news.vectors.iter().for_each(|(vector, name)| names.vector(*vector, name));
        }
    }
    if sections == 0 {
        return Err(Failure::usage(format!(
            "{} does not contain when preemption and interrupts are disabled: record with --events usual,preemptirq, on a kernel with \
             CONFIG_PREEMPTIRQ_TRACEPOINTS",
            path.display()
        )));
    }
    print(&text::absent(&recorded));
    let handlers = observer.handlers(&names);
    let length = span.map_or(1, |(first, last)| last - first);
    let found: Vec<Found> = latency
        .terms()
        .map(|(cpu, &terms)| Found {
            cpu,
            terms,
            bound: bound(cpu, &terms, &handlers, length),
            seen: seen.get(&cpu).copied(),
        })
        .collect();
    print(&table(&found).to_string());
    print(&wrapped("", LEGEND, 0, 100));
    for Found { cpu, terms, bound, .. } in &found {
        print(&wrapped("", &explained(*cpu, terms, *bound), 2, 100));
    }
    let defects: Vec<String> = found.iter().filter_map(|found| defect(found, &names)).collect();
    defects.iter().for_each(|defect| message!("error: {defect}"));
    let is_whole = defects.is_empty() && found.iter().any(|found| found.bound.is_some());
    Ok(if is_whole { 0 } else { FAILED })
}

/// Returns the time that a job waited for its CPU, if that is a scheduling latency.
fn waited(job: &Job, observer: &Observer, latency: &Latency) -> Option<(u16, Seen)> {
    let Actor::Thread(thread) = job.actor else { return None };
    let is_thread = matches!(job.kind, JobKind::Thread | JobKind::IrqThread);
    let (woken, waker) = (job.woken?, job.waker?);
    // Another CPU has to be notified first, which takes the time of an interprocessor interrupt.
    if !is_thread || !job.complete() || waker.cpu != job.first_cpu || job.jitter.hi().is_none() {
        return None;
    }
    let is_displaced = job.jitter_causes.iter().any(|cause| match cause.actor {
        Actor::Thread(other) => {
            let has_raised = || latency.raised(other).is_some_and(|since| since <= job.start);
            let priorities = &observer.priorities;
            let is_above = || priorities.own(other).is_none_or(|own| own <= job.priority);
            let was_above = || priorities.was_not_below(other, job.priority, woken);
            other != 0 && (is_above() || was_above() || has_raised())
        }
        Actor::Irq(_) | Actor::Vector(_) | Actor::Softirq(_) => false,
        _ => true,
    });
    (!is_displaced)
        .then(|| (job.first_cpu, Seen { ns: job.start.saturating_sub(woken), thread, at: job.start }))
}

/// With interrupts: the response time of a task that executes for as long as the bound without
/// them.
fn bound(cpu: u16, terms: &Terms, handlers: &[Handler], length: u64) -> Option<u64> {
    let mut system = System { partitions: vec![Partition::default()], ..System::default() };
    for handler in handlers.iter().filter(|handler| handler.cpu == u32::from(cpu)) {
        if handler.is_unknown {
            return None;
        }
        // Softirqs run with preemption disabled, and so are in the sections.
        if !handler.name.starts_with("softirq ") {
            interrupts(&mut system, 0, handler.name.clone(), handler, length);
        }
    }
    system.tasks.push(Task {
        name: String::new(),
        partition: 0,
        level: 1,
        execution: terms.without_interrupts()?,
        arrivals: Some(Stream::sporadic(MAX_TIME)),
        is_only_spawned: false,
        grid: None,
        most_spawns: None,
        is_periodic: false,
        jitter: 0,
        delay: 0,
        deadline: None,
        offset: None,
        sections: Vec::new(),
        spawns: Vec::new(),
        suspension: None,
        observed: Observed::default(),
    });
    analyze(&system).tasks.into_iter().next()?.ok().map(|bound| bound.response)
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new([
        Column::right("CPU"),
        Column::micros("POID"),
        Column::micros("ST"),
        Column::micros("PAIE"),
        Column::micros("PSD"),
        Column::micros("IRQ"),
        Column::micros("L bound"),
        Column::micros("L seen"),
    ]);
    for Found { cpu, terms, bound, seen } in found {
        let is_known = terms.sections > 0;
        let term = |it: Longest| Cell::micros(is_known.then_some(it.ns));
        let interrupts = bound.zip(terms.without_interrupts()).map(|(with, without)| with - without);
        table.row([
            Cell::new(cpu.to_string()),
            term(terms.poid),
            term(terms.st),
            term(terms.paie),
            term(terms.psd),
            Cell::micros(interrupts),
            Cell::micros(*bound),
            Cell::micros(seen.map(|seen| seen.ns)),
        ]);
    }
    table
}

fn explained(cpu: u16, terms: &Terms, bound: Option<u64>) -> String {
    if terms.sections == 0 {
        return format!(
            "CPU {cpu} has no bound: no section without preemption or interrupts was seen on it."
        );
    }
    if terms.contradictions > 0 {
        return format!(
            "CPU {cpu} has no bound: events are missing, since switches took place while preemption was enabled ({}).",
            terms.contradictions
        );
    }
    if bound.is_none() {
        return format!(
            "CPU {cpu} has no bound: how long its interrupts take is not known, or they take all of it."
        );
    }
    let (name, longest) = if terms.poid.ns >= terms.st.ns { ("POID", terms.poid) } else { ("ST", terms.st) };
    let terms = [(name, longest), ("PAIE", terms.paie), ("PSD", terms.psd)];
    let of = terms.map(|(name, it)| format!("{name} {} until {}", format_part(it.ns), format_clock(it.end)));
    format!("CPU {cpu}: {}, by the trace's clock.", of.join(", "))
}

/// Reports a thread that waited for longer than the bound.
fn defect(found: &Found, names: &Names) -> Option<String> {
    let (bound, seen) = (found.bound?, found.seen?);
    (seen.ns > bound).then(|| {
        format!(
            "the model is not that of the run: `{}`, which was switched to at {} by the trace's clock, waited {} for CPU {}, {} more \
             than its bound",
            names.of(Actor::Thread(seen.thread)),
            format_clock(seen.at),
            format_part(seen.ns),
            found.cpu,
            format_part(seen.ns - bound)
        )
    })
}
