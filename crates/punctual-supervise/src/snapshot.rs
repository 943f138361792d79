//! Snapshots of a job, written as text.

use std::fmt::Write as _;
use std::fs;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use punctual_report::escape::Printable;
use punctual_report::format::format_nanos;

use crate::budget::Job;
use crate::memory::App;
use crate::stack::{self, Stopped};

/// The maximum number of snapshots of one run.
const MAX_SNAPSHOTS: u32 = 64;

/// The snapshot files of one run.
#[derive(Debug)]
pub(crate) struct Snapshots {
    directory: PathBuf,
    process: u32,
    count: u32,
}

impl Snapshots {
    pub(crate) fn new(directory: &Path, process: u32) -> Self {
        Self { directory: directory.to_owned(), process, count: 0 }
    }

    /// Creates a new file and returns it with its path; `None` if the limit is reached.
    pub(crate) fn next(&mut self) -> io::Result<Option<(File, PathBuf)>> {
        while self.count < MAX_SNAPSHOTS {
            self.count += 1;
            let path = self.directory.join(format!("punctual-supervise-{}-{}.txt", self.process, self.count));
            // Overwrites no existing file and follows no link: another user may have guessed the
            // name.
            match punctual_files::create_new(&path) {
                Ok(file) => return Ok(Some((file, path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The ordinary threads that write snapshots.
#[derive(Debug, Default)]
pub(crate) struct Writers(Vec<(PathBuf, Receiver<io::Result<()>>)>);

impl Writers {
    /// Runs `write`, which writes the file at `path`.
    pub(crate) fn start(
        &mut self,
        path: PathBuf,
        write: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        // The receiver is gone after `finish`.
        thread::Builder::new().spawn(move || drop(sender.send(write())))?;
        self.0.push((path, receiver));
        Ok(())
    }

    /// Waits until all files are written, for at most `limit`; returns the failures.
    pub(crate) fn finish(&mut self, limit: Duration) -> Vec<String> {
        let until = Instant::now() + limit;
        let mut failures = Vec::new();
        for (path, receiver) in self.0.drain(..) {
            let why = match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(RecvTimeoutError::Disconnected) => {
                    "its thread panicked, since it cannot read the files of the app".into()
                }
                Err(RecvTimeoutError::Timeout) => format!(
                    "looking up its names took more than {} s: put the app and its libraries on a faster file \
                     system, or strip their debug information",
                    limit.as_secs_f64()
                ),
            };
            failures.push(format!("a stack could not be written to {}: {why}", path.display()));
        }
        failures
    }
}

/// The content of a snapshot.
#[derive(Debug)]
pub(crate) struct Scene {
    /// The event.
    pub(crate) what: String,
    pub(crate) app: Arc<App>,
    /// The running jobs.
    pub(crate) jobs: Vec<Job>,
    /// The thread that the event concerns.
    pub(crate) thread: u32,
    /// The kernel's view of that thread.
    pub(crate) state: String,
    pub(crate) stopped: Result<Stopped, String>,
}

/// Returns a one-line description of a thread from `/proc`. Escaped, since a thread may have any
/// name.
pub(crate) fn state(process: i32, thread: u32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/task/{thread}/{file}"));
    let Ok(status) = read("status") else { return "it has ended".into() };
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        Printable(line.unwrap_or("?").trim()).to_string()
    };
    let mut out = format!(
        "\"{}\", state {}, allowed CPUs {}",
        field("Name:"),
        field("State:"),
        field("Cpus_allowed_list:")
    );
    if let Ok(stat) = read("stat") {
        // After the name, which may contain any character: processor, real-time priority and policy
        // are fields 39 to 41.
        let fields: Vec<_> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
        let [cpu, priority, policy] = [36, 37, 38].map(|at| fields.get(at).copied().unwrap_or("?"));
        let policy = match policy {
            "0" => "SCHED_OTHER",
            "1" => "SCHED_FIFO",
            "2" => "SCHED_RR",
            "6" => "SCHED_DEADLINE",
            _ => "another policy",
        };
        let _ = write!(out, ", {policy} {priority}, last on CPU {cpu}");
    }
    if let Ok(waits) = read("wchan")
        && waits != "0"
    {
        let _ = write!(out, ", waits in {}", Printable(&waits));
    }
    out
}

/// Returns whether a thread is preempted or waits.
pub(crate) fn whereabouts(process: i32, thread: u32) -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/task/{thread}/{file}")).ok();
    let stat = read("stat").unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    match state {
        Some("R") => "its thread is ready to run, but preempted by other threads or the kernel".into(),
        Some("S" | "D") => match read("wchan").filter(|wchan| wchan != "0" && !wchan.is_empty()) {
            Some(wchan) => format!("its thread waits in {}", Printable(&wchan)),
            None => "its thread waits".into(),
        },
        Some(_) => "its thread is stopped".into(),
        None => "its thread has ended".into(),
    }
}

/// Returns the CPU time of a thread as of the last tick or context switch, in ns: a lower bound.
/// `None` if the kernel has no `schedstat`.
pub(crate) fn cpu_time_at_tick(process: i32, thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

impl Scene {
    /// Writes the snapshot. Slow, because it looks up function names.
    pub(crate) fn write(&self, mut file: File) -> io::Result<()> {
        let text = self.text();
        file.write_all(text.as_bytes())
    }

    fn text(&self) -> String {
        let mut out = format!("{} (process {}): {}\n", self.app.name, self.app.process, self.what);
        let _ = writeln!(out, "thread {}: {}", self.thread, self.state);
        out += "\njobs that run, highest level first\n";
        for job in self.jobs.iter().rev() {
            let task = self.app.tasks.get(job.running.task as usize).map_or("?", |task| &task.name);
            let _ = writeln!(
                out,
                "  partition {} level {}: {task}, job {} of the level, on thread {}, in progress for {}{}{}",
                job.level.partition,
                job.level.level,
                job.running.number,
                job.running.thread,
                format_nanos(job.elapsed as f64),
                job.cpu.map_or(String::new(), |cpu| format!(", CPU time {}", format_nanos(cpu as f64))),
                if job.is_highest { "" } else { ", preempted" },
            );
        }
        if self.jobs.is_empty() {
            out += "  none\n";
        }
        out += "\nstack of the thread, innermost call first\n";
        match &self.stopped {
            Ok(stopped) => {
                let _ = write!(out, "{}", stack::frames(stopped));
            }
            Err(why) => {
                let _ = writeln!(out, "  unknown: {why}");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_at_tick_is_at_most_thread_time() {
        let thread = rustix::thread::gettid().as_raw_pid();
        let Some(cpu_time) = cpu_time_at_tick(std::process::id() as i32, thread as u32) else {
            return test_skip::skip(test_skip::Need::System("schedstat"), "CPU time of a thread");
        };
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        assert!(cpu_time <= now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64);
        assert_eq!(cpu_time_at_tick(std::process::id() as i32, 0), None);
    }

    #[test]
    fn distinguishes_ready_from_waiting_thread() {
        let own = rustix::thread::gettid().as_raw_pid() as u32;
        let process = std::process::id() as i32;
        assert!(whereabouts(process, own).contains("preempted"));
        assert_eq!(whereabouts(process, 0), "its thread has ended");
    }

    #[test]
    fn waits_for_writers_within_limit() {
        let mut writers = Writers::default();
        let (release, block) = mpsc::channel::<()>();
        writers.start("late".into(), move || block.recv().map_err(io::Error::other)).unwrap();
        let late = writers.finish(Duration::from_millis(1)).remove(0);
        assert!(
            late.starts_with("a stack could not be written to late: ") && late.contains("0.001 s"),
            "{late}"
        );
        drop(release);
        assert!(writers.finish(Duration::ZERO).is_empty());
    }

    #[test]
    fn reports_writers_that_fail() {
        let mut writers = Writers::default();
        writers.start("done".into(), || Ok(())).unwrap();
        writers.start("full".into(), || Err(io::ErrorKind::StorageFull.into())).unwrap();
        writers.start("damaged".into(), || panic!("expected by the test")).unwrap();
        let failures = writers.finish(Duration::from_secs(300));
        let [full, damaged] = &*failures else { panic!("{failures:?}") };
        assert!(full.contains("to full: no storage space"), "{full}");
        assert!(damaged.contains("to damaged: its thread panicked"), "{damaged}");
    }

    #[test]
    fn never_overwrites_and_limits_crash_files() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        let taken = directory.join("punctual-supervise-7-1.txt");
        std::os::unix::fs::symlink(directory.join("elsewhere"), &taken).unwrap();
        let mut snapshots = Snapshots::new(directory, 7);
        let (_, path) = snapshots.next().unwrap().expect("there is room");
        assert_eq!(path, directory.join("punctual-supervise-7-2.txt"));
        let more = std::iter::from_fn(|| snapshots.next().unwrap()).count();
        assert_eq!(more, MAX_SNAPSHOTS as usize - 2);
    }
}
