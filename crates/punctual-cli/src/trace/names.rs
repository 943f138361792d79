//! Names of threads, tasks and interrupts as a trace reveals them.

use punctual_trace::event::Tid;
use punctual_trace::read::Events;
use punctual_trace::read::marker::Tasks;
use punctual_trace::read::translate::{Calls, Interrupts, Threads};
use punctual_trace::record::Live;

/// Names that are new, or have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NewNames {
    pub(crate) threads: Vec<(Tid, String)>,
    pub(crate) tasks: Vec<(u16, String)>,
    pub(crate) irqs: Vec<(u32, String)>,
    pub(crate) vectors: Vec<(u16, String)>,
    pub(crate) calls: Vec<(u32, String)>,
}

/// All names known so far.
#[derive(Clone, Copy)]
pub(crate) struct NameTables<'a> {
    threads: &'a Threads,
    tasks: &'a Tasks,
    interrupts: &'a Interrupts,
    calls: &'a Calls,
}

impl<'a> From<&'a Events> for NameTables<'a> {
    #[inline]
    fn from(events: &'a Events) -> Self {
        let (threads, tasks) = (events.threads(), events.tasks());
        Self { threads, tasks, interrupts: events.interrupts(), calls: events.calls() }
    }
}

impl<'a> From<&'a Live> for NameTables<'a> {
    fn from(live: &'a Live) -> Self {
        let (threads, tasks) = (live.threads(), live.tasks());
        Self { threads, tasks, interrupts: live.interrupts(), calls: live.calls() }
    }
}

/// Number of changes of names at the last update.
#[derive(Debug, Default)]
pub(crate) struct NameWatch([u64; 4]);

impl NameWatch {
    /// Returns the changes since the last call.
    #[inline]
    pub(crate) fn news<'a>(&mut self, told: impl Into<NameTables<'a>>) -> Option<NewNames> {
        let told = told.into();
        let (threads, tasks) = (told.threads.changes(), told.tasks.changes());
        let changes = [threads, tasks, told.interrupts.changes(), told.calls.changes()];
        if changes == self.0 { None } else { Some(self.all_news(told, changes)) }
    }

    #[cold]
    fn all_news(&mut self, told: NameTables<'_>, changes: [u64; 4]) -> NewNames {
        let [threads, tasks, interrupts, calls] = std::mem::replace(&mut self.0, changes);
        let mut news = NewNames { threads: owned(told.threads.since(threads)), ..NewNames::default() };
        if tasks != changes[1] {
            news.tasks = owned(told.tasks.iter());
        }
        if calls != changes[3] {
            news.calls = owned(told.calls.iter());
        }
        if interrupts != changes[2] {
            (news.irqs, news.vectors) = (owned(told.interrupts.irqs()), owned(told.interrupts.vectors()));
        }
        news
    }
}

fn owned<'a, N>(names: impl Iterator<Item = (N, &'a str)>) -> Vec<(N, String)> {
    names.map(|(number, name)| (number, name.to_owned())).collect()
}
