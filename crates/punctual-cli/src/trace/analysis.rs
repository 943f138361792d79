//! Turns events into statistics, for `report` and `watch` alike: selection, names and deadlines of
//! jobs.

use punctual_report::escape::Printable;
use punctual_report::format::format_counted;
use punctual_trace::event::{Event, Kind, Tid};
use punctual_trace::jobs::{self, Actor, Job, JobKind, Reservation, Select};
use punctual_trace::names::Names;
use punctual_trace::read::Trace;
use punctual_trace::read::translate::Threads;
use punctual_trace::recorded::Recorded;
use punctual_trace::stats::{CapturedJob, Key, MAX_TASKS, TaskStats, Watch};

use super::args::{Analysis, EVERYTHING};
use super::chains::Chains;
use super::names::NewNames;
use crate::output::message;
use crate::parse::Deadline;

/// Analyses events.
pub(crate) struct Analyzer {
    watch: Watch,
    names: Names,
    deadlines: Vec<Deadline>,
    filter: TaskFilter,
    chains: Chains,
}

impl Analyzer {
    /// Selects jobs by the command line, or else by `otherwise`, whose `tids` and `among` apply in
    /// both cases. Captures at least `keep` of the longest jobs. `history` contains every name in
    /// the recording, if it has been searched.
    pub(crate) fn new(
        arguments: &Analysis,
        otherwise: Select,
        (monotonic, recorded): (bool, Recorded),
        (segments, keep): (bool, usize),
        (chains, history): (Chains, Option<Names>),
    ) -> Self {
        let printable = |name: &String| Printable(name).to_string();
        let filter = TaskFilter { tasks: arguments.tasks.iter().map(printable).collect(), history };
        let select = match (arguments.shows_everything(), filter.tasks.is_empty()) {
            (true, _) => Select { priorities: Some(i32::MIN..=i32::MAX), ..otherwise },
            (false, true) => otherwise,
            (false, false) => select(&arguments.tasks, otherwise),
        };
        let select = chains.select(select);
        let config = jobs::Config {
            select,
            handlers: arguments.shows_everything(),
            futex: arguments.futex.waits(),
            monotonic,
            recorded,
            segments: segments || !chains.is_empty(),
            ..jobs::Config::default()
        };
        // At least one job of each task is captured, because it contains the task's priority.
        let mut watch = Watch::new(config, usize::from(arguments.worst).max(keep).max(1));
        watch.default_deadline(Deadline::of_all(&arguments.deadlines));
        let deadline = |known: &Deadline| Deadline { task: known.task.as_ref().map(printable), ns: known.ns };
        let (deadlines, names) = (arguments.deadlines.iter().map(deadline).collect(), Names::new());
        Self { watch, names, deadlines, filter, chains }
    }

    /// Captures up to `count` ordinary jobs of each task.
    pub(crate) fn sample(&mut self, count: usize) {
        self.watch.sample(count);
    }

    /// Reads the names that a trace contains before its first event.
    pub(crate) fn learn_from(&mut self, trace: &Trace) {
        for format in trace.formats() {
            self.names.event(format.id, &format!("{}:{}", format.system, format.name));
        }
        trace.processes().for_each(|(thread, process)| self.names.process(thread, process));
        trace.reservations().for_each(|(thread, reservation)| self.reserve(thread, reservation));
    }

    /// Sets the SCHED_DEADLINE reservation of a thread.
    pub(crate) fn reserve(&mut self, thread: Tid, reservation: Reservation) {
        self.watch.reserve(thread, reservation);
    }

    /// Excludes jobs that end before this time.
    pub(crate) fn only_since(&mut self, time: u64) {
        self.watch.only_since(time);
    }

    /// Adds the names of threads in a list. Call it before the first event.
    pub(crate) fn learn_listed(&mut self, threads: &Threads) {
        for (thread, name) in threads.iter() {
            self.names.thread(thread, &name.text());
            self.watch.name(thread, &name.text());
            self.expect_thread(thread);
        }
    }

    /// Adds the name that an event shows.
    #[cold]
    fn learn_shown(&mut self, event: &Event) {
        self.names.see(event);
        match event.kind {
            Kind::Named { thread, .. } => self.expect_thread(thread),
            Kind::Wakeup { task, new: true, .. } => {
                // The deadlines of the thread that had the number before are not its own.
                for kind in [JobKind::Thread, JobKind::IrqThread] {
                    self.watch.forget_deadline(Key { kind, actor: Actor::Thread(task.id) });
                }
                self.expect_thread(task.id);
            }
            _ => {}
        }
    }

    /// Applies the deadlines of a thread.
    fn expect_thread(&mut self, thread: Tid) {
        let is_irq = self.names.of_thread(thread).is_some_and(|name| name.starts_with("irq/"));
        self.expect(Actor::Thread(thread), if is_irq { JobKind::IrqThread } else { JobKind::Thread });
    }

    /// Adds names of tasks, interrupts and system calls. Call it before their events.
    pub(crate) fn learn(&mut self, news: &NewNames) {
        for (task, name) in &news.tasks {
            self.names.task(*task, name);
            self.expect(Actor::Task(*task), JobKind::Thread);
            self.expect(Actor::Task(*task), JobKind::Offline);
        }
        news.calls.iter().for_each(|(number, name)| self.names.call(*number, name));
        news.irqs.iter().for_each(|(irq, name)| self.names.irq(*irq, name));
        news.vectors.iter().for_each(|(vector, name)| self.names.vector(*vector, name));
    }

    /// Applies the deadlines of a thread or task that has just been named.
    fn expect(&mut self, actor: Actor, kind: JobKind) {
        if let Some(ns) = Deadline::named(&self.deadlines, |task| called(actor, task, &self.names)) {
            self.watch.deadline(Key { kind, actor }, ns);
        }
    }

    /// Analyses the next event. Calls `each` with every selected job that ends, and `alarm` with
    /// those that took too long.
    #[inline]
    pub(crate) fn feed(
        &mut self,
        event: &Event,
        each: &mut dyn FnMut(&Job, &Names),
        alarm: &mut dyn FnMut(&CapturedJob, &Names),
    ) {
        if matches!(event.kind, Kind::Named { .. } | Kind::Wakeup { new: true, .. }) {
            self.learn_shown(event);
        }
        let Self { watch, names, filter, chains, .. } = self;
        watch.feed(
            event,
            &mut |job| {
                chains.job(job, names, &filter.names_at(job.end, names));
                if filter.includes_job(job, names) {
                    each(job, names);
                }
            },
            &mut |captured| {
                if filter.includes_job(&captured.job, names) {
                    alarm(captured, names);
                }
            },
        );
    }

    /// Calls `alarm` with selected jobs that have not ended at `now` and take too long.
    pub(crate) fn overdue(&mut self, now: u64, alarm: &mut dyn FnMut(&CapturedJob, &Names)) {
        let Self { watch, names, filter, .. } = self;
        watch.overdue(now, &mut |captured| {
            if filter.includes_job(&captured.job, names) {
                alarm(captured, names);
            }
        });
    }

    /// Ends the jobs that are still open, as cut.
    pub(crate) fn finish(&mut self, each: &mut dyn FnMut(&Job, &Names)) {
        let Self { watch, names, filter, .. } = self;
        watch.finish(&mut |job| {
            if filter.includes_job(job, names) {
                each(job, names);
            }
        });
    }

    /// Returns the tasks to show: first those that apps name, then threads, then handlers; the
    /// highest priority first.
    pub(crate) fn tasks(&self) -> Vec<&TaskStats> {
        let mut tasks: Vec<_> =
            self.watch.tasks().iter().filter(|task| self.filter.includes(task, &self.names)).collect();
        tasks.sort_by_cached_key(|task| {
            let priority = task.priorities().map_or(i32::MAX, |priorities| priorities.0);
            let Key { kind, actor } = task.key();
            (kind, !matches!(actor, Actor::Task(_)), priority, self.names.of(actor), task.id())
        });
        tasks
    }

    /// Returns the names on the command line that match no task or thread with a job.
    pub(crate) fn unknown(&self) -> Vec<&str> {
        let has_jobs = |name: &&str| {
            self.watch.tasks().iter().any(|task| {
                let thread = task.worst().first().map(|captured| captured.job.actor);
                called(task.key().actor, name, &task.names(&self.names))
                    || thread.is_some_and(|thread| called(thread, name, &self.names))
            })
        };
        let deadlines = self.deadlines.iter().filter_map(|deadline| deadline.task.as_deref());
        let chained = self.chains.tasks();
        let named = self.filter.tasks.iter().map(String::as_str).chain(deadlines).chain(chained);
        named.filter(|name| *name != EVERYTHING && !has_jobs(name)).collect()
    }

    /// Warns if there were more tasks than fit.
    pub(crate) fn print_omissions(&self) {
        if self.watch.left_out() > 0 {
            message!(
                "warning: {} not shown, of tasks beyond the limit of {MAX_TASKS}; select tasks with --task",
                format_counted(self.watch.left_out(), "job")
            );
        }
    }

    /// Returns the limit of a job's response time, in ns, if there is one.
    pub(crate) fn limit(&self, job: &Job) -> Option<u64> {
        let (actor, names) = (Key::of(job).actor, self.names.at(job.end));
        Deadline::find(&self.deadlines, |task| called(actor, task, &names))
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the chains requested on the command line.
    pub(crate) fn chains(&self) -> &Chains {
        &self.chains
    }

    /// Returns the completed crossings of chains, as JSON.
    pub(crate) fn take_crossings(&mut self) -> Vec<String> {
        self.chains.take_lines()
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }
}

/// Returns the threads that may run the jobs, in addition to those with `known` IDs. Only marks
/// show which thread runs a task of a Punctual app.
fn select(tasks: &[String], known: Select) -> Select {
    Select {
        tids: tasks.iter().filter_map(|name| number(name)).chain(known.tids).collect(),
        names: tasks.iter().flat_map(|name| [kernel_name(name).to_owned(), name.clone()]).collect(),
        marked: true,
        among: known.among,
        ..Select::default()
    }
}

/// The tasks and threads named on the command line, as they are printed; if none, all.
struct TaskFilter {
    tasks: Vec<String>,
    /// Every name in the recording, if it has been searched.
    history: Option<Names>,
}

impl TaskFilter {
    #[inline]
    fn includes_job(&self, job: &Job, names: &Names) -> bool {
        let actors = [Some(job.actor), job.task.map(Actor::Task)];
        self.tasks.is_empty() || self.names_any(actors, &self.names_at(job.end, names))
    }

    fn includes(&self, task: &TaskStats, names: &Names) -> bool {
        let thread = task.worst().first().map(|captured| captured.job.actor);
        let names = task.names(self.history.as_ref().unwrap_or(names));
        self.tasks.is_empty() || self.names_any([Some(task.key().actor), thread], &names)
    }

    /// Names by which jobs that end at a time are chosen.
    fn names_at(&self, time: u64, names: &Names) -> Names {
        self.history.as_ref().unwrap_or(names).at(time)
    }

    fn names_any(&self, actors: [Option<Actor>; 2], names: &Names) -> bool {
        actors.into_iter().flatten().any(|actor| self.tasks.iter().any(|name| called(actor, name, names)))
    }
}

/// Returns whether `text` names the actor: by any name that it has had, by number, as in tables, or
/// by a prefix and `*`.
pub(crate) fn called(actor: Actor, text: &str, names: &Names) -> bool {
    let fits = |name: &str, text: &str| match text.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == text,
    };
    if fits(&names.of(actor), text) || (text.ends_with(')') && names.listed(actor) == text) {
        return true;
    }
    let Actor::Thread(thread) = actor else { return false };
    text.parse() == Ok(thread)
        || names.all_of_thread(thread).any(|name| {
            fits(name, kernel_name(text)) || fits(name, text) || fits(&format!("{name}/{thread}"), text)
        })
}

/// Returns the TID, alone or after the name as in tables.
pub(crate) fn number(text: &str) -> Option<Tid> {
    text.rsplit('/').next()?.parse().ok()
}

/// Returns a thread's name as the kernel truncates it.
pub(crate) fn kernel_name(name: &str) -> &str {
    let mut end = name.len().min(15);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    if name.ends_with('*') { name } else { &name[..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_threads_and_tasks_by_user_given_names() {
        let mut names = Names::new();
        names.thread(411, "a name of seven");
        names.thread(5, "irq/24-eth0");
        names.task(2, "sample");
        let thread = Actor::Thread(411);
        for text in ["411", "a name of seven", "a name of seventeen", "a name of seven/411", "a n*", "*"] {
            assert!(called(thread, text, &names), "{text}");
        }
        for text in ["41", "a name", "sample", "", "b*"] {
            assert!(!called(thread, text, &names), "{text}");
        }
        assert!(called(Actor::Thread(5), "irq/24-eth0", &names));
        assert!(called(Actor::Task(2), "sample", &names) && !called(Actor::Task(2), "2", &names));
        names.task(66, "sample");
        assert!(called(Actor::Task(2), "sample (task 2)", &names));
        assert!(
            !called(Actor::Task(66), "sample (task 2)", &names) && called(Actor::Task(66), "sample", &names)
        );
        assert_eq!((number("a/411"), number("7"), number("irq/24-eth0")), (Some(411), Some(7), None));
    }
}
