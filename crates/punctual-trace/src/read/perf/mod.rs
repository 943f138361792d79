//! perf.data, the file of `perf record`: reads the tracepoints in it, such as those of `perf sched record`.
//!
//! A sample of a tracepoint has the same bytes as the kernel's ring buffer, and the file has the same formats as a trace.dat. So
//! the samples of each CPU are sorted and written into pages like the ring buffer's; from there on it is a trace
//! like any other. The pages of a large file go to an unnamed temporary file.
//!
//! Reads version 2 in either byte order. Samples of anything but tracepoints are counted and left out.

mod file;
mod sample;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use self::file::{Attributes, Header, Record};
use super::error::ReadError;
use super::format::PageLayout;
use super::store::{MAX_IN_MEMORY, Store};
use super::trace::{Buffer, CpuData, Trace};
use super::{Bytes, dat};
use crate::write::page::PageWriter;

/// The size of the pages written.
const PAGE: usize = 4096;
/// Longer records do not fit into a page and are left out.
const MAX_RECORD: usize = PAGE - 64;
/// How much is sorted at a time if nothing in the file says what is in order.
const MAX_WAITING: usize = 64 << 20;
/// CPUs with higher numbers are rejected.
const MAX_CPUS: u32 = 8192;

/// Whether a file begins like a perf.data.
pub(crate) fn is_perf(start: &[u8]) -> bool {
    Header::order(start).is_some()
}

pub(super) fn open(name: Arc<str>, bytes: Arc<dyn Bytes>) -> Result<Trace, ReadError> {
    let header = Header::read(&name, &bytes)?;
    let attributes = header.attributes(&name, &bytes)?;
    let mut layout = PageLayout::usual(PAGE);
    layout.order = header.order;
    let length = bytes.length().map_err(|error| ReadError::Io { file: name.clone(), offset: 0, error })?;
    let mut pages = Pages { layout, in_memory: length <= MAX_IN_MEMORY, cpus: BTreeMap::new() };
    let mut found = Found::default();
    read(&header, &attributes, &name, &bytes, &mut pages, &mut found)?;
    let clock = attributes.clock();
    let failed = |error| ReadError::Io { file: name.clone(), offset: length, error };
    let cpus = pages.finish(&name).map_err(failed)?;
    let (start, end) = header.tracing_data.or(found.formats).unwrap_or((length, length));
    let buffer = Buffer { name: String::new(), clock: clock.to_owned(), page_size: None, cpus };
    let mut trace = dat::embedded(name, bytes, (start, end), (layout, buffer))?;
    trace.clock = clock.to_owned();
    trace.system = header.system.clone();
    trace.damage.append(&mut found.damage());
    for (thread, name) in found.names {
        trace.threads.extend(format!("{thread} {name}\n").bytes());
    }
    Ok(trace)
}

/// What was found besides samples.
#[derive(Default)]
struct Found {
    names: BTreeMap<u32, String>,
    /// Samples that are incomplete or not from tracepoints.
    left_out: u64,
    disordered: u64,
    /// Lost events of unknown position.
    lost: u64,
    cut: Option<u64>,
    /// Where the formats of events are, if among the records.
    formats: Option<(u64, u64)>,
}

/// How many names are kept.
const MAX_NAMES: usize = 1 << 17;

impl Found {
    fn damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                damage.push(format!("{count} {what}"));
            }
        };
        add(self.left_out, "samples are left out, which are no tracepoint's or not whole");
        add(
            self.disordered,
            "samples come later in the file than they may, and count as of the time of those before",
        );
        add(self.lost, "events were lost on CPUs that the file does not name");
        if let Some(at) = self.cut {
            damage.push(format!("the data ends at byte {at}, in a record"));
        }
        damage
    }
}

/// Reads the records, ordered as far as the file promises.
fn read(
    header: &Header,
    attributes: &Attributes,
    name: &Arc<str>,
    bytes: &Arc<dyn Bytes>,
    pages: &mut Pages,
    found: &mut Found,
) -> Result<(), ReadError> {
    let failed = |error| ReadError::Io { file: name.clone(), offset: header.data.0, error };
    let mut records = header.records(bytes).with(attributes);
    // Nothing before the end of a round is older than what was flushed at the end of the previous one.
    let (mut safe, mut newest, mut waiting) = (0, 0, 0);
    while let Some(record) = records.next(name)? {
        match record {
            Record::Sample(body) => match attributes.sample(header.order, body) {
                Some(sample) if sample.cpu < MAX_CPUS && sample.raw.len() <= MAX_RECORD => {
                    newest = newest.max(sample.time);
                    waiting += sample.raw.len() + 32;
                    pages.cpu(sample.cpu).waiting.push((sample.time, What::Record(sample.raw.into())));
                }
                _ => found.left_out += 1,
            },
            Record::Lost { count, time, cpu } => match cpu.filter(|&cpu| cpu < MAX_CPUS) {
                Some(cpu) => pages.cpu(cpu).waiting.push((time, What::Lost(count))),
                None => found.lost = found.lost.saturating_add(count),
            },
            Record::Name { thread, name } if found.names.len() < MAX_NAMES => {
                found.names.insert(thread, name.replace('\n', " "));
            }
            Record::Name { .. } => {}
            Record::Formats(start, end) => found.formats = Some((start, end)),
            Record::Round => {
                found.disordered += pages.flush(safe).map_err(failed)?;
                (safe, waiting) = (newest, 0);
            }
            Record::Packed => {
                let what = "its data is compressed; record it without -z, or write it anew with `perf inject -i FILE -o OTHER`";
                let (file, offset) = (name.clone(), records.offset());
                return Err(ReadError::Unsupported { file, offset, what: what.to_owned() });
            }
            Record::Other => {}
        }
        if waiting > MAX_WAITING {
            found.disordered += pages.flush(newest).map_err(failed)?;
            waiting = 0;
        }
    }
    found.cut = records.cut();
    found.disordered += pages.flush(u64::MAX).map_err(failed)?;
    Ok(())
}

enum What {
    Record(Box<[u8]>),
    Lost(u64),
}

/// The pages of a CPU, and the records not sorted yet.
struct Cpu {
    waiting: Vec<(u64, What)>,
    pages: Option<PageWriter<Store>>,
}

struct Pages {
    layout: PageLayout,
    in_memory: bool,
    cpus: BTreeMap<u32, Cpu>,
}

impl Pages {
    fn cpu(&mut self, cpu: u32) -> &mut Cpu {
        self.cpus.entry(cpu).or_insert_with(|| Cpu { waiting: Vec::new(), pages: None })
    }

    /// Writes the records up to that time; returns how many came too late to be in order.
    fn flush(&mut self, until: u64) -> io::Result<u64> {
        let (layout, in_memory) = (self.layout, self.in_memory);
        let mut late = 0;
        for cpu in self.cpus.values_mut() {
            cpu.waiting.sort_by_key(|(time, _)| *time);
            let count = cpu.waiting.partition_point(|(time, _)| *time <= until);
            if count > 0 && cpu.pages.is_none() {
                cpu.pages = Some(PageWriter::new(layout, Store::new(in_memory)?));
            }
            let Some(pages) = &mut cpu.pages else { continue };
            for (time, what) in cpu.waiting.drain(..count) {
                match what {
                    What::Record(record) => {
                        late += u64::from(time < pages.last());
                        pages.push(time.max(pages.last()), &record)?;
                    }
                    What::Lost(count) => pages.missed(count)?,
                }
            }
        }
        Ok(late)
    }

    fn finish(self, name: &Arc<str>) -> io::Result<Vec<CpuData>> {
        let mut all = Vec::new();
        for (cpu, Cpu { pages, .. }) in self.cpus {
            let Some(pages) = pages else { continue };
            let bytes = pages.finish()?.bytes();
            let length = bytes.length()?;
            all.push(CpuData { cpu: cpu as u16, file: name.clone(), bytes, start: 0, length, packed: None });
        }
        Ok(all)
    }
}
