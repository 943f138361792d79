//! perf.data, the file of `perf record`: reads the tracepoints in it, such as those of `perf sched
//! record`.
//!
//! A sample of a tracepoint has the same bytes as the kernel's ring buffer, and the file has the
//! same formats as a trace.dat. So the samples of each CPU are sorted and written into pages like
//! the ring buffer's; from there on it is a trace like any other. The pages of a large file go to
//! an unnamed temporary file.
//!
//! Reads version 2 in either byte order: files, also those written through a pipe (`-o -`) or
//! compressed (`-z`), and directories (`--threads`). Samples of other events than tracepoints are
//! counted and skipped. A recording of some threads (without `-a`) is rejected: it contains the
//! switches from these threads, but not those to them.

mod file;
mod records;
mod sample;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use self::file::{Attributes, Header, Parsed};
use self::records::{Record, Records};
use super::error::ReadError;
use super::{Buffer, Bytes, CpuData, Recorder, Trace, dat};
use crate::format::fields::PageLayout;
use crate::format::page_writer::PageWriter;
use crate::format::{MAX_IN_MEMORY, Store};

/// The size of the pages written.
const PAGE: usize = 4096;
/// Longer records do not fit into a page and are left out.
const MAX_RECORD: usize = PAGE - 64;
/// The number of bytes sorted at a time if the file does not indicate a safe order.
const MAX_WAITING: usize = 64 << 20;
/// The number of bytes from which on the records of a round are sorted.
const MIN_WAITING: usize = 1 << 20;
/// The size in bytes of a waiting record without its content.
const RECORD_OVERHEAD: usize = 32;
/// CPUs with higher numbers are rejected.
const MAX_CPUS: u32 = 8192;

/// Returns whether a file begins like a perf.data.
pub(crate) fn is_perf(start: &[u8]) -> bool {
    Header::order(start).is_some()
}

pub(super) fn open(name: Arc<str>, bytes: Arc<dyn Bytes>) -> Result<Trace, ReadError> {
    open_all(name, bytes, Vec::new())
}

/// Returns whether `perf record --threads` wrote a directory.
pub(super) fn is_directory(path: &Path) -> bool {
    let mut start = [0; 8];
    File::open(path.join("data")).is_ok_and(|file| io::Read::read_exact(&mut &file, &mut start).is_ok())
        && is_perf(&start)
}

/// Opens a directory of `perf record --threads`: `data` contains the header, and `data.N` the
/// samples of each thread of perf.
pub(super) fn open_directory(path: &Path) -> Result<Trace, ReadError> {
    let open = |file: &Path| -> Result<(Arc<str>, Arc<dyn Bytes>), ReadError> {
        let opened = File::open(file).map_err(|error| ReadError::Open { path: file.to_owned(), error })?;
        Ok((file.display().to_string().into(), Arc::new(opened)))
    };
    let entries = fs::read_dir(path).map_err(|error| ReadError::Open { path: path.to_owned(), error })?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let number = |name: String| name.strip_prefix("data.")?.parse::<u32>().ok();
    let mut numbers: Vec<u32> = names.filter_map(number).collect();
    numbers.sort_unstable();
    let files = numbers.iter().map(|number| open(&path.join(format!("data.{number}"))));
    let (name, bytes) = open(&path.join("data"))?;
    open_all(name, bytes, files.collect::<Result<_, _>>()?)
}

/// Opens a file, and further files that contain only records.
fn open_all(
    name: Arc<str>,
    bytes: Arc<dyn Bytes>,
    others: Vec<(Arc<str>, Arc<dyn Bytes>)>,
) -> Result<Trace, ReadError> {
    let mut header = Header::read(&name, &bytes)?;
    let mut attributes = header.attributes(&name, &bytes)?;
    let mut layout = PageLayout::usual(PAGE);
    layout.order = header.order;
    let length_of = |(name, bytes): (&Arc<str>, &Arc<dyn Bytes>)| {
        bytes.length().map_err(|error| ReadError::Io { file: name.clone(), offset: 0, error })
    };
    let length = length_of((&name, &bytes))?;
    let mut inputs = vec![(name.clone(), bytes.clone(), header.data)];
    for (name, bytes) in others {
        let end = length_of((&name, &bytes))?;
        inputs.push((name, bytes, (0, end)));
    }
    // Saturating, since a header may claim any length.
    let total = inputs.iter().fold(0_u64, |sum, (.., (start, end))| sum.saturating_add(end - start));
    let in_memory = total <= MAX_IN_MEMORY;
    let mut pages = Pages { layout, in_memory, cpus: BTreeMap::new() };
    let mut found = Found::default();
    for (name, bytes, range) in inputs {
        let records = || Records::new(&bytes, range, layout.order);
        let (header, attributes) = (&mut header, &mut attributes);
        let is_packed = read(records(), header, attributes, &name, &mut pages, &mut found)?;
        if is_packed {
            // Rounds are not compressed, so they do not delimit compressed records. The records of
            // each CPU are in order.
            let unpacked = records().unpacked(&name, length_of((&name, &bytes))?)?;
            // Their size is unknown until they have been read.
            pages.in_memory = false;
            read(unpacked, header, attributes, &name, &mut pages, &mut found)?;
        }
    }
    if found.of_threads {
        let what = "it was recorded without -a, and so has no switches to the recorded threads; record with `perf record -a -e \
                    'sched:*'`";
        return Err(ReadError::Unsupported { file: name, offset: header.data.0, what: what.to_owned() });
    }
    let clock = attributes.clock();
    let failed = |error| ReadError::Io { file: name.clone(), offset: length, error };
    let cpus = pages.finish(&name).map_err(failed)?;
    let (start, end) = header.tracing_data.or(found.formats).unwrap_or((length, length));
    let buffer = Buffer { name: String::new(), clock: clock.to_owned(), page_size: None, cpus };
    let mut trace = dat::embedded(name, bytes, (start, end), (layout, buffer))?;
    trace.clock = clock.to_owned();
    trace.system = header.system();
    trace.recorder = Recorder::Perf;
    trace.other_samples = found.others;
    trace.damage.append(&mut found.damage());
    for (thread, name) in found.names {
        trace.threads.extend(format!("{thread} {name}\n").bytes());
    }
    Ok(trace)
}

/// The results other than samples.
#[derive(Default)]
struct Found {
    names: BTreeMap<u32, String>,
    /// Samples of other events than tracepoints.
    others: u64,
    /// Samples that are incomplete, or of an event that the file does not describe.
    left_out: u64,
    /// Only some threads were recorded.
    of_threads: bool,
    disordered: u64,
    /// Lost events of unknown position.
    lost: u64,
    cut: Option<u64>,
    /// The location of the event formats, if they are among the records.
    formats: Option<(u64, u64)>,
}

/// The maximum number of stored names.
const MAX_NAMES: usize = 1 << 17;

impl Found {
    fn damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        let mut add = |count: u64, what: &str| {
            if count > 0 {
                damage.push(format!("{count} {what}"));
            }
        };
        add(
            self.left_out,
            "samples are left out, which are not whole or of an event that the file does not describe",
        );
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

/// Reads the records, ordered as far as the file promises. Returns whether some of them contain
/// compressed records.
fn read(
    mut records: Records,
    header: &mut Header,
    attributes: &mut Attributes,
    name: &Arc<str>,
    pages: &mut Pages,
    found: &mut Found,
) -> Result<bool, ReadError> {
    let failed = |error| ReadError::Io { file: name.clone(), offset: 0, error };
    records.set_sample_id(attributes.sample_id());
    let mut is_packed = false;
    // No record before the end of a round is older than the records flushed at the end of the
    // previous one.
    let (mut safe, mut newest, mut waiting) = (0, 0, 0);
    while let Some(record) = records.next(name)? {
        match record {
            Record::Sample(body) => match attributes.sample(header.order, body) {
                Parsed::Tracepoint(sample) if sample.cpu < MAX_CPUS && sample.raw.len() <= MAX_RECORD => {
                    newest = newest.max(sample.time);
                    waiting += sample.raw.len() + RECORD_OVERHEAD;
                    pages.cpu(sample.cpu).waiting.push((sample.time, What::Record(sample.raw.into())));
                }
                Parsed::Other => found.others += 1,
                Parsed::Tracepoint(_) | Parsed::Damaged => found.left_out += 1,
            },
            Record::Lost { count, time, cpu } => match cpu.filter(|&cpu| cpu < MAX_CPUS) {
                Some(cpu) => {
                    waiting += RECORD_OVERHEAD;
                    pages.cpu(cpu).waiting.push((time, What::Lost(count)));
                }
                None => found.lost = found.lost.saturating_add(count),
            },
            Record::Name { thread, name } if found.names.len() < MAX_NAMES => {
                found.names.insert(thread, name.replace('\n', " "));
            }
            Record::Formats(start, end) => found.formats = Some((start, end)),
            Record::Attribute(body) => {
                attributes.add_record(header.order, body);
                records.set_sample_id(attributes.sample_id());
            }
            Record::Feature(feature, content) => header.describe(feature, content),
            Record::OfThreads => found.of_threads = true,
            Record::Round => {
                // Short rounds are flushed together, since each flush visits every CPU.
                if waiting >= MIN_WAITING {
                    found.disordered += pages.flush(safe).map_err(failed)?;
                    waiting = 0;
                }
                safe = newest;
            }
            Record::Packed => is_packed = true,
            Record::Name { .. } | Record::Other => {}
        }
        if waiting > MAX_WAITING {
            found.disordered += pages.flush(newest).map_err(failed)?;
            waiting = 0;
        }
    }
    found.cut = found.cut.or(records.cut());
    found.disordered += pages.flush(u64::MAX).map_err(failed)?;
    Ok(is_packed)
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

    /// Writes the records up to that time; returns how many arrived too late to be in order.
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
