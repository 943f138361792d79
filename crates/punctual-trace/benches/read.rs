//! Measures the time and memory to read a trace of the scheduler and of interrupts, on one thread.
//!
//! `cargo bench -p punctual-trace --bench read [-- EVENTS [CPUS [TRACE.DAT]]]`. The trace is
//! generated, by default with 20 million events on four CPUs, in cargo's directory for temporary
//! files; it takes about 50 bytes per event twice, and is removed. Each step includes all the work
//! of those before it:
//!
//! * *pages*: splits the pages of all CPUs into records, from memory.
//! * *translate*: translates the records into events.
//! * *read*: reads the file and merges its CPUs by time, as for an analysis.
//!
//! Each runs several times in turn, and the slowest run comes first. The rate in CPU time excludes
//! the time that the machine spent on other processes. In the same run `trace-cmd report`, if
//! installed, prints a twentieth of the events, next to this reader reading the same file. `perf
//! sched timehist` cannot read that file; if it works here, it prints its own recording of two
//! seconds of this machine, and the rate counts those events. A file given as the last argument is
//! read as well.

mod traces;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use punctual_process::child::{BoundedChild, BoundedCommand, TEST_LIMIT};
use punctual_trace::event::Kind;
use punctual_trace::read::format::PageLayout;
use punctual_trace::read::page::{Page, PageError};
use punctual_trace::read::translate::Translator;
use punctual_trace::read::{Order, Trace};
use punctual_trace::write::formats;

use self::traces::{Outcome, Run, Scene, peak_memory, show, timed};

const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments = traces::arguments();
    let number = |at: usize, default| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    traces::in_a_directory("read", |place| {
        run(place, number(0, 20_000_000), number(1, 4) as u16, arguments.get(2).map(Path::new))
    })
}

fn run(place: &Path, count: u64, cpus: u16, real: Option<&Path>) -> Outcome<()> {
    let file = traces::write(&place.join("all"), Scene::Random, count, cpus)?;
    println!(
        "{count} events, {cpus} CPUs, {:.1} bytes an event in the file",
        fs::metadata(&file)?.len() as f64 / count as f64
    );
    in_memory(place, count, cpus)?;
    let before = peak_memory();
    let runs = (0..ROUNDS).map(|_| read(&file)).collect::<Outcome<Vec<_>>>()?;
    if runs.iter().any(|&(events, ..)| events != count) {
        return Err(format!("{count} events were written, and these read: {runs:?}").into());
    }
    show("read: read + translate + merge", &runs);
    println!("{:42} {:8.1} MB (before reading {:.1})", "peak memory", peak_memory(), before);

    let few = count.min(1_000_000).max(count / 20);
    let small = traces::write(&place.join("few"), Scene::Random, few, cpus)?;
    compare(&small, few)?;
    perf(place)?;
    if let Some(real) = real {
        let runs = (0..ROUNDS).map(|_| read(real)).collect::<Outcome<Vec<_>>>()?;
        show(&format!("read: {}", real.display()), &runs);
    }
    Ok(())
}

/// Reads a whole file.
fn read(file: &Path) -> Outcome<Run> {
    timed(|| {
        let (mut count, mut last) = (0, 0);
        let mut events = Trace::open(file)?.events()?;
        while let Some(run) = events.next_run() {
            for event in run? {
                assert!(event.time >= last, "the events are in order");
                last = event.time;
                // A name that a record shows is a further event.
                count += u64::from(!matches!(event.kind, Kind::Named { .. }));
            }
        }
        Ok(count)
    })
}

fn in_memory(place: &Path, count: u64, cpus: u16) -> Outcome<()> {
    // One CPU's part of a tenth of the trace, to limit its size.
    let directory = place.join("memory");
    traces::record(&directory, Scene::Random, count / 10, cpus)?;
    let bytes = fs::read(directory.join("per_cpu/cpu0/trace_pipe_raw"))?;
    fs::remove_dir_all(&directory)?;
    let layout = PageLayout::parse(formats::HEADER_PAGE.as_bytes(), Order::NATIVE)?;
    let mut translator = Translator::new(Order::NATIVE, &formats::all(), &[]);
    let (mut pages, mut translated) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        pages.push(timed(|| {
            let (mut records, mut sum) = (0, 0u64);
            for page in bytes.chunks(layout.size) {
                let mut page = Page::open(&layout, page)?;
                while let Some(record) = page.next_record()? {
                    records += 1;
                    sum = sum.wrapping_add(record.time ^ record.length() as u64);
                }
            }
            std::hint::black_box(sum);
            Ok::<_, PageError>(records)
        })?);
        translated.push(timed(|| {
            let (mut events, mut into) = (0, Vec::with_capacity(512));
            for page in bytes.chunks(layout.size) {
                let mut page = Page::open(&layout, page)?;
                into.clear();
                while let Some(record) = page.next_record()? {
                    translator.translate(0, &record, &mut into)?;
                }
                events += std::hint::black_box(&into).len() as u64;
            }
            Outcome::Ok(events)
        })?);
    }
    show("pages: records of one CPU, in memory", &pages);
    show("translate: their events", &translated);
    Ok(())
}

fn compare(file: &Path, count: u64) -> Outcome<()> {
    let installed = Command::new("trace-cmd")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status_within(TEST_LIMIT);
    if installed.is_err() {
        println!("trace-cmd is not installed, so there is nothing to compare with");
        return Ok(());
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        ours.push(read(file)?);
        let mut report = Command::new("trace-cmd");
        report.arg("report").arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        let (count, time, _) = timed(|| match report.status_within(TEST_LIMIT)?.success() {
            true => Ok(count),
            false => Outcome::Err("trace-cmd report failed".into()),
        })?;
        // Another process, whose CPU time is not measured.
        theirs.push((count, time, f64::NAN));
    }
    show(&format!("read: a file of {count}"), &ours);
    show("trace-cmd report of the same file", &theirs);
    Ok(())
}

/// Measures how fast perf pairs wake-ups and switches.
fn perf(place: &Path) -> Outcome<()> {
    let file = place.join("perf.data");
    let mut record = Command::new("perf");
    record.args(["sched", "record", "-o"]).arg(&file);
    let mut load = Command::new("sh");
    // Two processes that wake each other, so that there are events to record.
    load.args(["-c", "timeout 2 yes | timeout 2 cat > /dev/null"]);
    let load = load.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let recorded = record.args(["--", "sleep", "2"]).output_within(TEST_LIMIT);
    load?.status_within(TEST_LIMIT)?;
    let text =
        recorded.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default();
    // `[ perf record: Captured and wrote 1.718 MB perf.data (14380 samples) ]`
    let samples =
        text.split_once(" samples)").and_then(|(before, _)| before.rsplit_once('(')?.1.parse().ok());
    let Some(samples) = samples else {
        println!("perf sched record does not work here, so there is nothing to compare with");
        return Ok(());
    };
    let mut runs = Vec::new();
    for _ in 0..3 {
        let mut timehist = Command::new("perf");
        timehist.args(["sched", "timehist", "-i"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        runs.push(timed(|| match timehist.status_within(TEST_LIMIT)?.success() {
            true => Ok(samples),
            false => Outcome::Err("perf sched timehist failed".into()),
        })?);
    }
    // Another process, whose CPU time is not measured.
    runs.iter_mut().for_each(|run| run.2 = f64::NAN);
    show(&format!("perf sched timehist of {samples} of its own"), &runs);
    Ok(())
}
