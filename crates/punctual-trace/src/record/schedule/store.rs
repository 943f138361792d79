//! The records of the BPF programs as an additional buffer of a capture directory, in pages like
//! the kernel's.
//!
//! The records are thus merged by time like any other buffer, become a buffer of trace.dat, and
//! appear in `trace-cmd report` and KernelShark as the events `punctual:schedule_enter` and
//! `punctual:schedule_exit`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Programs, Record};
use crate::format::fields::PageLayout;
use crate::format::page_writer::PageWriter;
use crate::record::error::RecordError;
use crate::record::save::{Saver, formats};

/// The path of the buffer in the capture directory.
const BUFFER: &str = "instances/schedule";

/// Returns the path of a CPU's counts in the capture directory.
pub(in crate::record) fn statistics_file(cpu: u32) -> String {
    format!("{BUFFER}/per_cpu/cpu{cpu}/stats")
}

/// Returns the format of an event with this name, number and field.
fn format(name: &str, id: u16, field: &str) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         \tfield:unsigned int {field};\toffset:8;\tsize:4;\tsigned:0;\n\n\
         print fmt: \"{field}=%u\", REC->{field}\n"
    )
}

/// The numbers of lost and stored records of a CPU.
#[derive(Debug, Default)]
pub(in crate::record) struct Counts {
    lost: AtomicU64,
    stored: AtomicU64,
}

impl Counts {
    /// Returns the numbers of lost and stored records.
    pub(in crate::record) fn get(&self) -> (u64, u64) {
        // Relaxed: statistics that order nothing.
        (self.lost.load(Ordering::Relaxed), self.stored.load(Ordering::Relaxed))
    }

    /// Returns the counts in the kernel's format for its buffers.
    pub(in crate::record) fn statistics(&self) -> String {
        let (lost, stored) = self.get();
        format!("entries: 0\noverrun: 0\ndropped events: {lost}\nread events: {stored}\n")
    }

    fn add(&self, lost: u64, stored: u64) {
        self.lost.fetch_add(lost, Ordering::Relaxed);
        self.stored.fetch_add(stored, Ordering::Relaxed);
    }
}

/// The pages of a CPU.
struct Pages {
    file: Arc<File>,
    path: PathBuf,
    pages: PageWriter<Arc<File>>,
}

/// Moves records from the rings to files.
pub(in crate::record) struct Store {
    programs: Programs,
    /// In the order of the programs' CPUs.
    cpus: Vec<Pages>,
    counts: Arc<[Counts]>,
    directory: PathBuf,
    page: usize,
    /// The number of the event for entry; that of exit is the next.
    id: u16,
}

impl Store {
    /// Creates the files; `systems` are the other recorded groups of events.
    pub(in crate::record) fn create(
        programs: Programs,
        saver: &Saver<'_>,
        systems: &[String],
        layout: PageLayout,
    ) -> Result<Self, RecordError> {
        let directory = saver.directory.path();
        let id = free_id(saver.tracefs, systems);
        for (name, id, field) in [("schedule_enter", id, "preempt"), ("schedule_exit", id + 1, "is_switch")] {
            saver.write(&format!("events/punctual/{name}/format"), format(name, id, field).as_bytes())?;
        }
        let one = |cpu: &u32| {
            let name = format!("{BUFFER}/per_cpu/cpu{cpu}/trace_pipe_raw");
            let file = Arc::new(saver.create(&name)?);
            let path = directory.join(name);
            Ok(Pages { pages: PageWriter::new(layout, file.clone()), file, path })
        };
        let cpus = programs.cpus().iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let counts = cpus.iter().map(|_| Counts::default()).collect();
        Ok(Self { programs, cpus, counts, directory: directory.to_owned(), page: layout.size, id })
    }

    /// Starts recording.
    pub(in crate::record) fn attach(&mut self) -> Result<(), RecordError> {
        self.programs.attach()
    }

    /// Returns the counts, in the order of CPUs.
    pub(in crate::record) fn counts(&self) -> Arc<[Counts]> {
        self.counts.clone()
    }

    /// Stores the available records and returns their size in bytes; the last call first ends the
    /// recording.
    pub(in crate::record) fn step(&mut self, last: bool) -> Result<u64, RecordError> {
        if last {
            self.programs.detach();
        }
        let mut bytes = 0;
        for index in 0..self.cpus.len() {
            match self.step_cpu(index, last) {
                Ok(count) => bytes += count,
                Err(error) => {
                    let Pages { file, path, .. } = &self.cpus[index];
                    // A partially written page is not valid.
                    let whole = file.metadata().map_or(0, |metadata| metadata.len());
                    let _ = file.set_len(whole - whole % self.page as u64);
                    return Err(RecordError::output(&self.directory, path, error));
                }
            }
        }
        Ok(bytes)
    }

    fn step_cpu(&mut self, index: usize, last: bool) -> io::Result<u64> {
        let Self { programs, cpus, counts, id, .. } = self;
        let (pages, counts) = (&mut cpus[index].pages, &counts[index]);
        // A ring that fills as fast as it is read must not delay the others.
        let mut room = 1 << 16;
        let (mut lost, mut stored, mut result) = (0, 0, Ok(()));
        let before = pages.pages();
        programs.read(index, |record| {
            lost += record.lost;
            stored += 1;
            room -= 1;
            result = store(pages, *id, &record);
            result.is_ok() && (last || room > 0)
        });
        result?;
        if last && let Some((missing, _)) = programs.missing(index) {
            pages.missed(missing)?;
            lost += missing;
        }
        pages.flush()?;
        counts.add(lost, stored);
        Ok((pages.pages() - before) * self.page as u64)
    }
}

fn store(pages: &mut PageWriter<Arc<File>>, id: u16, record: &Record) -> io::Result<()> {
    let &Record { time, thread, leaves, argument, lost, .. } = record;
    if lost > 0 {
        // Both ends of the gap are marked, the first with the time of the last record.
        pages.missed(lost)?;
        pages.flush()?;
        pages.missed(0)?;
    }
    let mut bytes = [0; 12];
    bytes[..2].copy_from_slice(&(id + u16::from(leaves)).to_ne_bytes());
    bytes[4..8].copy_from_slice(&thread.to_ne_bytes());
    bytes[8..].copy_from_slice(&u32::from(argument).to_ne_bytes());
    pages.push(time, &bytes)
}

/// Returns the first of two consecutive numbers that are unused by the events of these groups.
fn free_id(tracefs: &Path, systems: &[String]) -> u16 {
    let highest = formats(tracefs, systems, true).into_iter().map(|format| format.id).max();
    highest.unwrap_or(0).min(u16::MAX - 2) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;
    use crate::format::Order;
    use crate::format::fields::EventFormat;
    use crate::format::page::{Missed, Page};
    use crate::read::translate::Translator;

    #[test]
    fn reads_stored_records_as_their_events() {
        let stored = tempfile::NamedTempFile::new().unwrap();
        let file = Arc::new(stored.reopen().unwrap());
        let layout = PageLayout::usual(4096);
        let mut pages = PageWriter::new(layout, file);
        let record =
            |time, leaves, lost| Record { time, thread: 411, leaves, argument: true, lost, after: 2_500 };
        let records = [record(1_000, false, 0), record(2_500, true, 0), record(9_000, false, 3)];
        records.iter().for_each(|record| store(&mut pages, 2_000, record).unwrap());
        pages.flush().unwrap();
        let bytes = std::fs::read(stored).unwrap();
        assert_eq!(bytes.len() as u64, 4096 * pages.pages());

        let texts = [format("schedule_enter", 2_000, "preempt"), format("schedule_exit", 2_001, "is_switch")];
        let formats = texts.map(|text| EventFormat::parse("punctual", text.as_bytes()).unwrap());
        let mut translator = Translator::new(Order::NATIVE, &formats, &[]);
        let mut events = Vec::new();
        let mut gaps = Vec::new();
        for bytes in bytes.chunks(4096) {
            let mut page = Page::open(&layout, bytes).unwrap();
            gaps.push((page.header().time, page.header().missed));
            while let Some(record) = page.next_record().unwrap() {
                translator.translate(1, &record, &mut events).unwrap();
            }
        }
        assert_eq!(gaps, [(1_000, None), (2_500, Some(Missed::Count(3))), (9_000, Some(Missed::Some))]);
        let kinds: Vec<_> = events.iter().map(|event| (event.time, event.by, event.kind)).collect();
        let (enter, exit) = (Kind::ScheduleEnter, Kind::ScheduleExit);
        assert_eq!(kinds, [(1_000, 411, enter), (2_500, 411, exit), (9_000, 411, enter)]);
    }
}
