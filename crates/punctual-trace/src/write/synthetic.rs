//! Writes a capture directory of synthetic events.
//!
//! See the example of [`write`](crate::write).

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::encode::{BUDGET_TIMER, Encoder, SCHEDULE};
use super::{WriteError, formats};
use crate::event::{Event, Kind, Tid};
use crate::format::Order;
use crate::format::exchange::Message;
use crate::format::fields::PageLayout;
use crate::format::page_writer::PageWriter;
use crate::recorded::Recorded;

/// Page size of the kernel whose formats are used.
const PAGE: usize = 4096;

/// Writes a capture directory, event by event.
pub struct Synthetic {
    path: PathBuf,
    encoder: Encoder,
    cpus: BTreeMap<u16, PageWriter<BufWriter<File>>>,
    names: HashMap<Tid, String>,
    record: Vec<u8>,
}

impl Synthetic {
    /// Creates the directory, or writes into an existing one.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let save = |name: &str, content: &str| {
            let file = path.join(name);
            let directory = file.parent().unwrap_or(path);
            let result = fs::create_dir_all(directory).and_then(|()| fs::write(&file, content));
            result.map_err(|error| WriteError::output(&file, None, error))
        };
        save("events/header_page", formats::HEADER_PAGE)?;
        save("events/header_event", formats::HEADER_EVENT)?;
        for ((group, text), format) in formats::texts().zip(formats::all()) {
            save(&format!("events/{group}/{}/format", format.name), text)?;
        }
        save("kallsyms", &format!("{SCHEDULE:016x} T schedule\n{BUDGET_TIMER:016x} t dl_task_timer\n"))?;
        let names = formats::texts()
            .zip(formats::all())
            .map(|((group, _), format)| format!("{group}:{}\n", format.name));
        save("recorded", &names.collect::<String>())?;
        save("trace_clock", "local global [mono] boot\n")?;
        Ok(Self {
            path: path.to_owned(),
            encoder: Encoder::new(Order::NATIVE, &formats::all()),
            cpus: BTreeMap::new(),
            names: HashMap::new(),
            record: Vec::new(),
        })
    }

    /// Names a thread, in the following events and in the list of names.
    pub fn name(&mut self, thread: Tid, name: &str) {
        self.names.insert(thread, name.to_owned());
    }

    /// Declares that only these events are recorded, as `group:event`, instead of all that can be
    /// written.
    pub fn recorded<'a>(&mut self, events: impl IntoIterator<Item = &'a str>) -> Result<(), WriteError> {
        let file = self.path.join("recorded");
        fs::write(&file, Recorded::declaration(events, None))
            .map_err(|error| WriteError::output(&file, None, error))
    }

    /// Appends an event, which must not be older than the last one of its CPU.
    pub fn push(&mut self, event: &Event) -> Result<(), WriteError> {
        let Event { time, cpu, .. } = *event;
        if let Kind::Lost { count } = event.kind {
            return self.append(time, cpu, |pages, _| pages.missed(count));
        }
        if let Kind::Named { thread, name } = event.kind {
            self.name(thread, &name.text());
            return Ok(());
        }
        let names = &self.names;
        self.encoder.encode(event, |thread| names.get(&thread).map(String::as_str), &mut self.record)?;
        self.append(time, cpu, |pages, record| pages.push(time, record))
    }

    /// Appends the mark of a message that `by` has sent or received.
    pub fn message(&mut self, cpu: u16, by: Tid, message: Message) -> Result<(), WriteError> {
        let Message { number, time, sent } = message;
        self.encoder.encode_message(by, number, sent, &mut self.record)?;
        self.append(time, cpu, |pages, record| pages.push(time, record))
    }

    fn append(
        &mut self,
        time: u64,
        cpu: u16,
        what: impl FnOnce(&mut PageWriter<BufWriter<File>>, &[u8]) -> std::io::Result<()>,
    ) -> Result<(), WriteError> {
        let file = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let failed = |error| WriteError::output(&file, None, error);
        let pages = match self.cpus.entry(cpu) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                fs::create_dir_all(file.parent().unwrap_or(&self.path)).map_err(failed)?;
                let out = BufWriter::with_capacity(16 * PAGE, File::create(&file).map_err(failed)?);
                entry.insert(PageWriter::new(PageLayout::usual(PAGE), out))
            }
        };
        if time < pages.last() {
            return Err(WriteError::Backwards { cpu, time, before: pages.last() });
        }
        what(pages, &self.record).map_err(failed)
    }

    /// Writes the remaining data.
    pub fn finish(self) -> Result<(), WriteError> {
        for (cpu, pages) in self.cpus {
            let file = self.path.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            pages.finish().map_err(|error| WriteError::output(&file, None, error))?;
        }
        let file = self.path.join("saved_cmdlines");
        let failed = |error| WriteError::output(&file, None, error);
        let mut out = BufWriter::new(File::create(&file).map_err(failed)?);
        for (thread, name) in &self.names {
            writeln!(out, "{thread} {name}").map_err(failed)?;
        }
        out.flush().map_err(failed)
    }
}
