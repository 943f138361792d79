//! Fuzz targets: one function for each reader, for `cargo xtask fuzz traces` and for the test
//! `hostile`, which runs without the fuzzer; its ignored test `writes_corpus` rewrites the corpus.
//!
//! `target.rs` is the program of every target. New inputs are stored in `target/fuzz/found`,
//! failing ones in `target/fuzz/failures`. The layout is that of cargo-fuzz, which adds
//! AddressSanitizer on a nightly compiler.

use std::sync::{Arc, LazyLock};

use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::jobs::{Actor, Config, Decomposer, Job};
use punctual_trace::names::Names;
use punctual_trace::read::format::{EventFormat, PageLayout, check_header_event};
use punctual_trace::read::page::Page;
use punctual_trace::read::translate::Translator;
use punctual_trace::read::{Order, Trace};
use punctual_trace::write::formats;
use punctual_trace_report::explain;
use punctual_trace_report::export::{Csv, json};

/// Passes an input to the target with this name.
pub(crate) fn run(target: &str, data: &[u8]) {
    match target {
        "ctf" => ctf(data),
        // Their corpora differ.
        "dat" | "perf" => dat(data),
        "format" => format(data),
        "names" => names(data),
        "page" => page(data),
        _ => unreachable!("the manifest has no target `{target}`"),
    }
}

/// Uses any bytes as the names of a thread, an interrupt and a task: descriptions of their jobs
/// contain no control characters and no additional lines.
fn names(data: &[u8]) {
    let mut names = Names::new();
    let name = String::from_utf8_lossy(data);
    names.thread(7, &name);
    names.irq(24, &name);
    names.vector(236, &name);
    names.task(3, &name);
    let jobs = scene();
    assert!(jobs.len() > 3);
    let mut csv = Csv::new(Vec::new()).expect("memory can be written");
    for job in &jobs {
        csv.job(job, &names).expect("memory can be written");
        check(&json(job, &names));
        explain::job(job, &names).iter().for_each(|sentence| check(sentence));
    }
    let csv = String::from_utf8(csv.finish().expect("memory can be written")).expect("CSV is text");
    assert_eq!(csv.lines().count(), 1 + jobs.len());
    csv.lines().for_each(check);
    for actor in [Actor::Thread(7), Actor::Irq(24), Actor::Vector(236), Actor::Task(3)] {
        check(&names.of(actor));
    }
}

fn check(text: &str) {
    let active = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(active), "{text:?}");
}

/// Returns jobs of a thread, of one that it waits for, of an interrupt and of a task.
fn scene() -> Vec<Job> {
    let (idle, thread) = (Task { id: 0, priority: 120 }, Task { id: 7, priority: 10 });
    let mut jobs = Vec::new();
    let mut decomposer = Decomposer::new(Config { handlers: true, segments: true, ..Config::default() });
    let kinds = [
        (0, Kind::IrqEntry { irq: 24 }),
        (0, Kind::Waking { task: thread, cpu: 0 }),
        (0, Kind::IrqExit { irq: 24 }),
        (0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: thread }),
        (7, Kind::VectorEntry { vector: 236 }),
        (7, Kind::VectorExit { vector: 236 }),
        (7, Kind::Switch { from: thread, reason: SwitchOut::Sleeping, to: idle }),
        (0, Kind::Waking { task: thread, cpu: 0 }),
        (0, Kind::Switch { from: idle, reason: SwitchOut::Runnable, to: thread }),
        (7, Kind::JobStart { task: 3, released: 800 }),
        (7, Kind::JobEnd { task: 3 }),
        (7, Kind::Switch { from: thread, reason: SwitchOut::Sleeping, to: idle }),
    ];
    for (n, (by, kind)) in (1..).zip(kinds) {
        decomposer.feed(&Event { time: 100 * n, cpu: 0, by, kind }, &mut |job| jobs.push(job.clone()));
    }
    jobs
}

static FORMATS: LazyLock<Vec<EventFormat>> = LazyLock::new(formats::all);

/// Parses any text as each of the three kinds of formats, and decodes records by the event format.
fn format(data: &[u8]) {
    for order in [Order::Little, Order::Big] {
        if let Ok(layout) = PageLayout::parse(data, order) {
            let _ = Page::open(&layout, data).map(|mut page| while let Ok(Some(_)) = page.next_record() {});
        }
    }
    let _ = check_header_event(data);
    for system in ["sched", "irq_vectors", "syscalls", "ftrace"] {
        if let Ok(format) = EventFormat::parse(system, data) {
            let translator = Translator::new(Order::Little, &[format], &[1]);
            records(translator, data);
        }
    }
}

fn records(mut translator: Translator, data: &[u8]) {
    let mut events = Vec::new();
    for start in 0..data.len().min(64) {
        let record = punctual_trace::read::page::Record::new(1, &data[start..]);
        let _ = translator.translate(0, &record, &mut events);
    }
}

/// Reads any bytes as a page, in either byte order, and its records as events.
fn page(data: &[u8]) {
    for (order, long) in [(Order::Little, 8), (Order::Big, 8), (Order::Little, 4)] {
        let layout = PageLayout { order, long, ..PageLayout::usual(4096) };
        let mut translator = Translator::new(order, &FORMATS, &[1]);
        let mut events = Vec::new();
        if let Ok(mut page) = Page::open(&layout, data) {
            // Each record takes at least four bytes.
            for _ in 0..=data.len() / 4 {
                match page.next_record() {
                    Ok(Some(record)) => {
                        assert!(record.offset + record.length() <= data.len());
                        let _ = translator.translate(0, &record, &mut events);
                    }
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }
}

/// Reads any bytes as a trace.dat, and all its events, in order.
fn dat(data: &[u8]) {
    if let Ok(trace) = Trace::from_bytes("fuzz", Arc::new(data.to_vec())) {
        events(&trace);
    }
}

/// Reads any bytes up to the first zero as a metadata file, and the rest as a stream.
fn ctf(data: &[u8]) {
    let zero = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let stream = data.get(zero + 1..).unwrap_or_default().to_vec();
    match Trace::from_ctf("fuzz", &data[..zero], vec![("fuzz: stream".into(), Arc::new(stream))]) {
        Ok(trace) => events(&trace),
        Err(error) => assert!(error.to_string().contains("fuzz")),
    }
}

fn events(trace: &Trace) {
    let Ok(events) = trace.events() else { return };
    let mut last = 0;
    // A few bytes can declare data for thousands of CPUs, all at one offset.
    for event in events.take(100_000) {
        match event {
            Ok(event) => {
                assert!(event.time >= last);
                last = event.time;
            }
            Err(error) => assert!(error.to_string().contains("fuzz: ")),
        }
    }
}
