//! Marks for the kernel's trace, as they are written. An ordinary file replaces the kernel's, which
//! would store only their bytes; `punctual-trace` tests them in recordings.
#![cfg(all(feature = "async", feature = "monitoring"))]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::{privileges, process};
use punctual::Config;
use punctual_core::trace_marker::{self, Mark};
use test_skip::{Need, skip};

/// Number of releases of `beat`.
const BEATS: u64 = 5;

#[punctual::app(main = false, partitions = [home, fast(poll)])]
mod app {
    use std::os::unix::net::UnixStream;

    use punctual::prelude::*;

    use super::BEATS;

    #[shared]
    struct Shared {
        #[lock_free]
        began: u64,
    }

    #[local]
    struct Local {
        line: UnixStream,
        other: UnixStream,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        let (line, other) = UnixStream::pair().unwrap();
        line.set_nonblocking(true).unwrap();
        (Shared { began: 0 }, Local { line, other })
    }

    #[task(priority = 2, core = home, period = 5.millis(), shared = [began], local = [other])]
    fn beat(cx: beat::Context) {
        // On a busy machine the app stops some beats later.
        if *cx.shared.began == BEATS {
            return;
        }
        *cx.shared.began += 1;
        // Queued, unless it already is; called, and called by a called job.
        let _ = below::spawn();
        above::spawn(1).unwrap();
        polled::spawn().unwrap();
        rustix::io::write(&*cx.local.other, b"!").unwrap();
    }

    #[task(priority = 1, core = home)]
    async fn below(_: below::Context) {}

    #[task(priority = 3, core = home)]
    fn above(_: above::Context, left: u32) {
        topmost::spawn(left).unwrap();
    }

    #[task(priority = 4, core = home)]
    fn topmost(_: topmost::Context, _left: u32) {}

    #[task(priority = 1, core = home, binds = line, local = [line])]
    fn edge(cx: edge::Context) {
        let _ = rustix::io::read(&*cx.local.line, &mut [0; 64]);
    }

    #[task(priority = 1, core = fast, capacity = 8, local = [jobs: u64 = 0])]
    fn polled(cx: polled::Context) {
        *cx.local.jobs += 1;
        if *cx.local.jobs == BEATS {
            let _ = last::spawn_after(3.millis()).unwrap();
        }
    }

    #[task(priority = 1, core = home)]
    fn last(_: last::Context) {
        punctual::shutdown();
    }
}

#[test]
#[ignore = "a program of another test"]
fn program() {
    match app::run(Config::from_env()) {
        Ok(report) => {
            for task in &report.tasks {
                println!("{} {}", task.name, task.jobs);
            }
            report.settings.notes.iter().for_each(|note| println!("note: {note}"));
            process::exit(report.exit_code().into())
        }
        Err(error) => {
            println!("{error}");
            process::exit(error.exit_code().into())
        }
    }
}

fn run(marker: &str) -> (Command, process::Ended) {
    let mut command = process::program("marks::program");
    command.env("PUNCTUAL_TRACE", marker);
    privileges::no_runaways(&mut command);
    let again = privileges::unprivileged(&command);
    let ended = process::start(command).end();
    (again, ended)
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        fs::write(&path, b"").unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Parses a file into its marks.
fn marks(bytes: &[u8]) -> Vec<(Mark<'_>, usize)> {
    let (mut marks, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let id = u32::from_ne_bytes(*rest.first_chunk().unwrap());
        let mark = Mark::read(id, &rest[4..], cfg!(target_endian = "big")).expect("nothing else is in it");
        let length = mark.write(cfg!(target_endian = "big")).len();
        marks.push((mark, length));
        rest = &rest[length..];
    }
    marks
}

#[test]
fn marks_each_job_with_its_task() {
    let place = Place::new("marks");
    let (_, ended) = run(place.0.to_str().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.output);
    let bytes = fs::read(&place.0).unwrap();
    let (mut names, mut jobs) = (BTreeMap::new(), BTreeMap::<&str, Vec<u64>>::new());
    let mut deepest = 0;
    let mut open = Vec::new();
    for (mark, _) in marks(&bytes) {
        match mark {
            Mark::Name { task, name } => {
                let name = std::str::from_utf8(name).unwrap();
                assert_eq!(*names.entry(task).or_insert(name), name);
            }
            Mark::Start { task, released } => {
                jobs.entry(names[&task]).or_default().push(released);
                open.push(task);
                deepest = deepest.max(open.len());
            }
            // Threads do not nest into each other's jobs, but with privileges they do interleave.
            Mark::End { task } => {
                let last = open.iter().rposition(|&open| open == task).expect("it was started");
                open.remove(last);
            }
            Mark::OfflineJob { .. } | Mark::Lost { .. } => panic!("it has no half without Linux"),
        }
    }
    assert!(open.is_empty(), "{open:?} have not ended");
    assert!(deepest >= 3, "a call of a call is inside both");
    let reported: BTreeMap<&str, usize> = ended
        .output
        .lines()
        .filter_map(|line| {
            line.split_once(' ')?.1.parse().ok().map(|jobs| (line.split_once(' ').unwrap().0, jobs))
        })
        .filter(|(name, _)| ["above", "beat", "below", "edge", "last", "topmost", "polled"].contains(name))
        .collect();
    let marked: BTreeMap<&str, usize> = jobs.iter().map(|(name, jobs)| (*name, jobs.len())).collect();
    let mut expected = reported.clone();
    assert_eq!(expected.remove("polled"), Some(BEATS as usize), "{}", ended.output);
    assert_eq!(marked, expected);
    assert!(ended.output.contains("note: the jobs of partition fast are not marked"), "{}", ended.output);

    // Releases are on the grid, or at the spawn.
    let beats = &jobs["beat"];
    assert!(beats.windows(2).all(|two| (two[1] - two[0]) % 5_000_000 == 0), "{beats:?}");
    for (spawned, beat) in jobs["above"].iter().zip(beats) {
        assert!(spawned >= beat, "{spawned} {beat}");
    }
    for (called, caller) in jobs["topmost"].iter().zip(&jobs["above"]) {
        assert!(called >= caller, "{called} {caller}");
    }
}

#[test]
fn reports_unmarked_jobs() {
    let (unprivileged, ended) = run("/proc/self/no marker");
    let words = ["punctual: jobs are not marked in the trace", "/proc/self/no marker", "start the recording"];
    assert!(words.iter().all(|word| ended.output.contains(word)), "{}", ended.output);
    assert!(ended.output.contains("note: jobs are not marked"), "{}", ended.output);
    assert_eq!(ended.code, 0, "{}", ended.output);

    let mut command = unprivileged;
    command.env("PUNCTUAL_TRACE", "1");
    let ended = process::start(command).end();
    assert!(ended.output.contains("punctual: jobs are not marked in the trace"), "{}", ended.output);
    assert_eq!(ended.code, 0, "{}", ended.output);

    let (_, ended) = run("yes");
    assert!(ended.output.contains("PUNCTUAL_TRACE=yes is invalid; set it to 1 or 0"), "{}", ended.output);
}

/// An instance of the kernel's trace that is off, as other tools leave the top-level one.
struct Instance(PathBuf);

impl Instance {
    fn off() -> io::Result<Self> {
        let name = format!("test-marks-{}", std::process::id());
        let path = PathBuf::from("/sys/kernel/tracing/instances").join(name);
        fs::create_dir(&path)?;
        let instance = Self(path);
        fs::write(instance.0.join("tracing_on"), "0")?;
        Ok(instance)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn reports_trace_that_is_off() {
    let instance = match Instance::off() {
        Ok(instance) => instance,
        Err(error) => return skip(Need::Tracefs, error),
    };
    let (_, ended) = run(instance.0.join("trace_marker_raw").to_str().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.output);
    let why = "jobs are not marked in the trace: ";
    for printed in
        [format!("punctual: {why}"), format!("note: {why}"), "tracing_on is 0; write 1 to it".into()]
    {
        assert!(ended.output.contains(&printed), "{}", ended.output);
    }
    assert!(!ended.output.contains("each job is marked"), "{}", ended.output);
}

#[test]
fn virtual_time_marks_nothing() {
    let report = app::run(Config::new().trace(true).virtual_time()).unwrap();
    assert!(report.settings.notes.is_empty());
    assert_eq!(trace_marker::end(0).len(), 8);
}
