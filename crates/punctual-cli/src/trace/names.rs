//! Names of tasks, interrupts and system calls in a trace. Names of threads are events.

use punctual_trace::read::Events;
use punctual_trace::read::marker::Tasks;
use punctual_trace::read::translate::{Calls, Interrupts};
use punctual_trace::record::Live;

/// Names that are new, or have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NewNames {
    pub(crate) tasks: Vec<(u16, String)>,
    pub(crate) irqs: Vec<(u32, String)>,
    pub(crate) vectors: Vec<(u16, String)>,
    pub(crate) calls: Vec<(u32, String)>,
}

/// All names known so far.
#[derive(Clone, Copy)]
pub(crate) struct NameTables<'a> {
    tasks: &'a Tasks,
    interrupts: &'a Interrupts,
    calls: &'a Calls,
}

impl<'a> From<&'a Events> for NameTables<'a> {
    #[inline]
    fn from(events: &'a Events) -> Self {
        Self { tasks: events.tasks(), interrupts: events.interrupts(), calls: events.calls() }
    }
}

impl<'a> From<&'a Live> for NameTables<'a> {
    fn from(live: &'a Live) -> Self {
        Self { tasks: live.tasks(), interrupts: live.interrupts(), calls: live.calls() }
    }
}

/// Number of changes of names at the last update.
#[derive(Debug, Default)]
pub(crate) struct NameWatch([u64; 3]);

impl NameWatch {
    /// Returns the changes since the last call.
    #[inline]
    pub(crate) fn news<'a>(&mut self, tables: impl Into<NameTables<'a>>) -> Option<NewNames> {
        let tables = tables.into();
        let changes = [tables.tasks.changes(), tables.interrupts.changes(), tables.calls.changes()];
        if changes == self.0 { None } else { Some(self.all_news(tables, changes)) }
    }

    #[cold]
    fn all_news(&mut self, tables: NameTables<'_>, changes: [u64; 3]) -> NewNames {
        let [tasks, interrupts, calls] = std::mem::replace(&mut self.0, changes);
        let mut news = NewNames::default();
        if tasks != changes[0] {
            news.tasks = owned(tables.tasks.iter());
        }
        if calls != changes[2] {
            news.calls = owned(tables.calls.iter());
        }
        if interrupts != changes[1] {
            (news.irqs, news.vectors) = (owned(tables.interrupts.irqs()), owned(tables.interrupts.vectors()));
        }
        news
    }
}

fn owned<'a, N>(names: impl Iterator<Item = (N, &'a str)>) -> Vec<(N, String)> {
    names.map(|(number, name)| (number, name.to_owned())).collect()
}
