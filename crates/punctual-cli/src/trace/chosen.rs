//! Threads selected by a command line, determined before the analysis: a thread has to be followed
//! from its first event on, under any name, because otherwise its jobs would depend on how it was
//! selected.

use std::collections::BTreeSet;

use punctual_report::escape::Printable;
use punctual_trace::event::{Event, Kind, Tid};
use punctual_trace::jobs::Actor;
use punctual_trace::names::Names;
use punctual_trace::read::Trace;
use punctual_trace::read::translate::Threads;

use super::Failure;
use super::analysis::called;
use super::args::Report;
use super::names::NewNames;
use super::parse::ChainOf;
use super::reading::{Batch, Reading};

/// Threads selected on the command line.
#[derive(Default)]
pub(crate) struct Chosen {
    pub(crate) threads: Vec<Tid>,
    /// Every name in the recording, if it was searched.
    pub(crate) names: Option<Names>,
}

/// Returns the threads that at some time have a name on the command line, and those that run its
/// tasks of Punctual apps. Reads the trace if names have to be looked up; read errors are reported
/// when it is analyzed.
pub(crate) fn threads(arguments: &Report, trace: &Trace) -> Result<Chosen, Failure> {
    let of_chains = arguments.chains.iter().filter_map(|chain| match chain {
        ChainOf::Tasks(tasks) => Some(tasks),
        ChainOf::Auto => None,
    });
    let tasks = arguments.analysis.tasks.iter().chain(of_chains.flatten());
    let printable = |task: &String| Printable(task).to_string();
    let mut search = Search::new(tasks.filter(|task| task.parse::<Tid>().is_err()).map(printable).collect());
    if search.tasks.is_empty() || arguments.analysis.shows_everything() {
        return Ok(Chosen::default());
    }
    let events = trace.events()?;
    search.list(events.threads());
    std::thread::scope(|scope| {
        let reading = Reading::start(scope, events)?;
        while let Some(Batch { news, events, .. }) = reading.next() {
            if let Some(news) = &news {
                search.learn(news);
            }
            events.iter().for_each(|event| search.see(event));
            reading.give_back(events);
        }
        Ok::<_, Failure>(())
    })?;
    Ok(search.found())
}

#[derive(Default)]
struct Search {
    /// Names of threads or tasks.
    tasks: Vec<String>,
    names: Names,
    threads: BTreeSet<Tid>,
    /// Threads whose names are in a list.
    listed: Vec<Tid>,
    /// Threads that have marked jobs of a task. The names of tasks may come later.
    marks: BTreeSet<(u16, Tid)>,
}

impl Search {
    fn new(tasks: Vec<String>) -> Self {
        Self { tasks, ..Self::default() }
    }

    fn means(&self, actor: Actor) -> bool {
        self.tasks.iter().any(|task| called(actor, task, &self.names))
    }

    fn learn(&mut self, news: &NewNames) {
        news.tasks.iter().for_each(|(task, name)| self.names.task(*task, name));
    }

    fn list(&mut self, threads: &Threads) {
        for (thread, name) in threads.iter() {
            self.names.thread(thread, &name.text());
            self.listed.push(thread);
        }
    }

    #[inline]
    fn see(&mut self, event: &Event) {
        self.names.see(event);
        if let Kind::Named { thread, .. } = event.kind
            && self.means(Actor::Thread(thread))
        {
            self.threads.insert(thread);
        }
        if let Kind::JobStart { task, .. } | Kind::OfflineJob { task, .. } = event.kind {
            self.marks.insert((task, event.by));
        }
    }

    fn found(self) -> Chosen {
        let runs = self.marks.iter().filter(|mark| self.means(Actor::Task(mark.0))).map(|mark| mark.1);
        let mut threads = self.threads.clone();
        threads.extend(runs);
        // Threads that no event has named have the name in the list.
        threads.extend(self.listed.iter().filter(|&&thread| self.means(Actor::Thread(thread))));
        Chosen { threads: threads.into_iter().collect(), names: Some(self.names) }
    }
}

#[cfg(test)]
mod tests {
    use punctual_trace::event::Comm;

    use super::*;

    #[test]
    fn finds_threads_by_any_name_or_task() {
        let mut search = Search::new(vec!["control".into(), "sample".into()]);
        let mut listed = Threads::default();
        listed.insert_lines(b"8 control\n9 sh\n10 sh\n11 control\n");
        search.list(&listed);
        for (thread, name) in [(7, "sh"), (7, "control"), (7, "after"), (8, "sh")] {
            let kind = Kind::Named { thread, name: Comm::new(name) };
            search.see(&Event { time: 1, cpu: 0, by: thread, kind });
        }
        for (by, task) in [(9, 1), (10, 2)] {
            search.see(&Event { time: 1, cpu: 0, by, kind: Kind::JobStart { task, released: 0 } });
        }
        search.learn(&NewNames { tasks: vec![(2, "sample".into())], ..NewNames::default() });
        assert_eq!(search.found().threads, [7, 10, 11], "8 had another name as long as it was recorded");
    }
}
