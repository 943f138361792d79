//! Checks after a run has returned, within its process.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use punctual::Report;
use punctual::report::Outcome;

use crate::app::{App, Interface};
use crate::ledger::{Jobs, RELAXED, TOKENS, is_virtual, ledger, violation};
use crate::token::{self, Kind};
use crate::{timers, watch};

/// Performs all checks after a run; `first` is the first token that was created in it.
pub(crate) fn run_has_ended(app: &App, report: &Report, first: u32) {
    outcome(app, report);
    jobs(app, report, first);
    nothing_is_accepted(app);
    timers::are_without_effect();
    watch::no_thread_runs("the run has ended");
    watch::nothing_is_used("the run has ended");
    if ledger().idling.load(RELAXED) != 0 {
        violation("the run has ended while idle runs");
    }
    everything_is_dropped(first);
    all_processes_ended();
}

fn outcome(app: &App, report: &Report) {
    let panics = ledger().panics.load(RELAXED);
    match &report.outcome {
        Outcome::Panicked { task, message } if panics == 0 || task.contains("executor") => {
            violation(&format!("`{task}` is said to have panicked after {panics} panics: {message}"));
        }
        Outcome::Panicked { .. } => {}
        other if panics > 0 => violation(&format!("after {panics} panics the outcome is {other:?}")),
        Outcome::Signal(_) if ledger().signals.load(RELAXED) == 0 => violation("a signal that nobody sent"),
        Outcome::Overrun { task } if !app.tasks.iter().any(|known| known.stops && known.name == *task) => {
            violation(&format!("the app stopped for an overrun of {task}"));
        }
        _ => {}
    }
    let (filled, hooks) = (ledger().filled.load(RELAXED), ledger().hooks.load(RELAXED));
    if app.hook && hooks != filled {
        violation(&format!("the hook ran {hooks} times after `init` had ended {filled} times"));
    }
}

/// Checks that each spawned job ran, was dropped or was cancelled, and that the report agrees.
fn jobs(app: &App, report: &Report, first: u32) {
    let (mut dropped, mut unseen) = (0, 0);
    let complete = (ledger().next_token.load(RELAXED) as usize) < TOKENS;
    for task in app.tasks {
        let Jobs { sent, runs, cancelled } = &ledger().tasks[usize::from(task.spot.task)];
        let [sent, runs, cancelled] = [sent, runs, cancelled].map(|count| count.load(RELAXED));
        if let (true, true, Some(reported)) = (app.monitored, task.counted, report.task(task.name))
            && reported.jobs != u64::from(runs)
        {
            violation(&format!(
                "the report has {} jobs of {}, which ran {runs} times",
                reported.jobs, task.name
            ));
        }
        unseen += u64::from(task.unseen);
        let spawned = task.is_spawned();
        let lost = token::unaccounted_jobs(first, task.spot.task);
        if spawned && complete && u64::from(sent) != u64::from(runs) + u64::from(cancelled) + lost {
            violation(&format!(
                "{} was spawned {sent} times, ran {runs} times, was cancelled {cancelled} times and dropped {lost} times",
                task.name
            ));
        }
        if matches!(task.interface, Interface::Message { .. }) {
            dropped += lost;
        } else if spawned {
            // A dropped future does not count as a job; a spawn while the app stops does.
            unseen += lost;
        }
    }
    // A fault reaches one partition after the other. Until then, clocks and sources release jobs,
    // which are dropped.
    let releases = app.tasks.iter().any(|task| !task.is_spawned());
    if releases && ledger().panics.load(RELAXED) > 0 && !is_virtual() {
        unseen = u64::MAX - dropped;
    }
    if complete && !(dropped..=dropped + unseen).contains(&report.dropped_jobs) {
        violation(&format!(
            "the report has {} dropped jobs of {dropped} messages and at most {unseen} others",
            report.dropped_jobs
        ));
    }
}

fn nothing_is_accepted(app: &App) {
    for task in app.tasks.iter().filter(|task| !matches!(task.interface, Interface::Pend(_))) {
        if task.spawn() {
            violation(&format!("a spawn of {} is accepted after the run", task.name));
        }
    }
}

fn everything_is_dropped(first: u32) {
    for (id, kind, task, state) in token::undropped(first) {
        if kind != Kind::Eternal {
            violation(&format!("{kind:?} {id} of task {task} was never dropped; its state: {state:#x}"));
        }
    }
}

/// Time after which the kernel has removed a joined thread even on a slow machine.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Checks that no thread of the app is left.
fn all_processes_ended() {
    let deadline = Instant::now() + JOIN_TIMEOUT;
    loop {
        let tasks = fs::read_dir("/proc/self/task").expect("a process can see its threads");
        let left = tasks.count();
        if left <= 1 {
            return;
        }
        if Instant::now() > deadline {
            return violation(&format!("{} threads are left behind", left - 1));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
