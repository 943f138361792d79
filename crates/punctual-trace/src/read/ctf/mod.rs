//! CTF, the format of LTTng: a directory with a metadata file, which describes the binary layout,
//! and files of packets of events.
//!
//! Of CTF 1.8 this module reads the kernel events that LTTng writes, in either byte order; it
//! rejects events of user space, and CTF 2. Each event becomes a record as ftrace would have
//! written it. The records of each CPU, which LTTng may store in several files, are sorted and
//! written into pages like the ring buffer's; from there on it is a trace like any other.
//!
//! LTTng does not record the running thread of each event. It follows from the switches: the next
//! thread of a switch runs until the next switch, and before the first one its previous thread ran.

mod kernel;
mod stream;
mod tsdl;
mod types;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::kernel::Classes;
use self::stream::{Stream, What};
use self::tsdl::Metadata;
use super::error::ReadError;
use super::{Buffer, Bytes, CpuData, Order, Recorder, Trace, dat};
use crate::event::Tid;
use crate::format::fields::PageLayout;
use crate::format::page_writer::PageWriter;
use crate::format::{MAX_IN_MEMORY, Store};

/// The size of the pages written: room for the longest record.
const PAGE: usize = 32 << 10;
const _: () = assert!(kernel::MAX_RECORD + 64 < PAGE);
/// CPUs with higher numbers are rejected.
const MAX_CPUS: u32 = 8192;
/// Metadata files take a few hundred KiB.
const MAX_METADATA: u64 = 64 << 20;
/// The name of the metadata file.
const METADATA: &str = "metadata";
/// The magic number of a metadata file in packets.
const PACKETS: u32 = 0x75d1_1d57;
/// The length of such a packet's header, and the offsets in it of the sizes of its content and of
/// the packet.
const PACKET_HEAD: usize = 37;
const CONTENT_SIZE: usize = 24;
const PACKET_SIZE: usize = 28;

/// Returns the directory with the metadata file: this one or, in the layout of `lttng`, one inside
/// it.
pub(super) fn find(path: &Path) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| path.join(METADATA).is_file();
    [path.to_owned(), path.join("kernel")].into_iter().find(is_it)
}

/// Opens the trace in such a directory.
pub(super) fn open(path: &Path) -> Result<Trace, ReadError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| ReadError::Open { path, error }
    };
    let metadata = path.join(METADATA);
    let text = punctual_files::read(&metadata, MAX_METADATA).map_err(failed(&metadata))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if entry.path().is_file() && entry.path() != metadata && !is_hidden {
            files.push(entry.path());
        }
    }
    files.sort();
    let mut streams: Vec<(Arc<str>, Arc<dyn Bytes>)> = Vec::new();
    for file in files {
        let bytes = File::open(&file).map_err(failed(&file))?;
        streams.push((file.display().to_string().into(), Arc::new(bytes)));
    }
    read(path.display().to_string().into(), &text, streams)
}

/// Builds a trace from that metadata file and those streams.
pub(super) fn read(
    file: Arc<str>,
    metadata: &[u8],
    streams: Vec<(Arc<str>, Arc<dyn Bytes>)>,
) -> Result<Trace, ReadError> {
    let name: Arc<str> = format!("{file}/{METADATA}").into();
    let text = text(&name, metadata)?;
    let declared = tsdl::parse(&text).map_err(|wrong| {
        let problem = format!("line {}: {}", wrong.line, wrong.problem);
        ReadError::Corrupt { file: name.clone(), offset: 0, problem }
    })?;
    let domain = declared.env.get("domain").map_or("kernel", String::as_str);
    if domain != "kernel" {
        let what = format!(
            "these are events of `{}`; give the directory of the kernel's, which is beside it",
            domain.escape_debug()
        );
        return Err(ReadError::Unsupported { file: name, offset: 0, what });
    }
    let mut damage = Vec::new();
    let mut classes = Classes::new(declared.env.get("kernel_release").map_or("", String::as_str));
    let mut events: Vec<_> = declared
        .streams
        .iter()
        .flat_map(|(&stream, of)| of.events.iter().map(move |(&id, event)| (stream, id, event)))
        .collect();
    events.sort_by_key(|&(stream, id, _)| (stream, id));
    let left_out = events.iter().filter(|(stream, id, event)| !classes.add(*stream, *id, event)).count();
    if left_out > 0 {
        damage.push(format!("{left_out} kinds of events are left out, because there are more than 65 535"));
    }
    let mut total = 0;
    let mut cpus: BTreeMap<u32, Vec<Stream<'_>>> = BTreeMap::new();
    for (file, bytes) in streams {
        total += bytes.length().map_err(|error| ReadError::Io { file: file.clone(), offset: 0, error })?;
        let stream = Stream::open(file, bytes, &declared, &classes)?;
        match stream.cpu {
            cpu if cpu < MAX_CPUS => cpus.entry(cpu).or_default().push(stream),
            cpu => damage.push(format!("the data of a CPU with the number {cpu} is left out")),
        }
    }
    let mut all = Vec::new();
    let mut known = Known::default();
    for (cpu, streams) in cpus {
        let pages =
            PageWriter::new(PageLayout::usual(PAGE), failing(&file, Store::new(total <= MAX_IN_MEMORY))?);
        let mut merged = Merged { pages, cpu, running: None, waiting: Vec::new(), size: 0, late: 0 };
        merged.read(streams, &file, &mut known, &mut damage)?;
        let bytes = failing(&file, merged.pages.finish())?.bytes();
        let length = failing(&file, bytes.length())?;
        if length > 0 {
            all.push(CpuData { cpu: cpu as u16, file: file.clone(), bytes, start: 0, length, packed: None });
        }
    }
    if all.is_empty() {
        return Err(ReadError::Empty { file });
    }
    let clock = match declared.clock.name.as_str() {
        "monotonic" => "mono".to_owned(),
        other => other.to_owned(),
    };
    let buffer = Buffer { name: String::new(), clock: clock.clone(), page_size: None, cpus: all };
    let lines = known.names.iter().flat_map(|(thread, name)| format!("{thread} {name}\n").into_bytes());
    Ok(Trace {
        file,
        layout: PageLayout::usual(PAGE),
        formats: classes.formats.clone(),
        unreadable: Vec::new(),
        buffers: vec![buffer],
        threads: lines.collect(),
        functions: dat::Functions::default(),
        clock,
        system: system(&declared),
        statistics: Vec::new(),
        scale: None,
        declared: None,
        damage,
        recorder: Recorder::Lttng,
        other_samples: 0,
    })
}

/// Returns the system as in `uname`, without the processor, which LTTng does not record.
fn system(declared: &Metadata) -> String {
    let parts = ["sysname", "hostname", "kernel_release", "kernel_version"];
    let parts: Vec<&str> =
        parts.iter().filter_map(|part| declared.env.get(*part)).map(String::as_str).collect();
    parts.join(" ")
}

fn failing<T>(file: &Arc<str>, result: io::Result<T>) -> Result<T, ReadError> {
    result.map_err(|error| ReadError::Io { file: file.clone(), offset: 0, error })
}

/// Returns the text of a metadata file, which may be in packets.
fn text(name: &Arc<str>, bytes: &[u8]) -> Result<String, ReadError> {
    let orders = [Order::Little, Order::Big];
    let Some(order) = orders.into_iter().find(|order| order.u32(bytes, 0) == Some(PACKETS)) else {
        let text = String::from_utf8_lossy(bytes).into_owned();
        // CTF 2 has JSON instead, in fragments that may begin with a record separator.
        if text.trim_start_matches(['\u{1e}', ' ', '\n']).starts_with(['{', '[']) {
            let what = "this is CTF 2, of which only version 1.8 can be read; convert it with `babeltrace2 --output-format=ctf \
                        --output=DIR`";
            return Err(ReadError::Unsupported { file: name.clone(), offset: 0, what: what.to_owned() });
        }
        return Ok(text);
    };
    let (mut text, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let corrupt = |problem: &str| {
            let (file, problem) = (name.clone(), problem.to_owned());
            Err(ReadError::Corrupt { file, offset: at as u64, problem })
        };
        if order.u32(bytes, at) != Some(PACKETS) {
            return corrupt("a packet is missing here");
        }
        let size = |place| order.u32(bytes, at + place).map_or(0, |bits| bits as usize / 8);
        let (content, packet) = (size(CONTENT_SIZE), size(PACKET_SIZE));
        if content < PACKET_HEAD || packet < content {
            return corrupt("the sizes of a packet are invalid");
        }
        match bytes.get(at + PACKET_HEAD..at + content) {
            Some(content) => text.extend_from_slice(content),
            None => return corrupt("a packet is cut off"),
        }
        at += packet;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Information about threads from the events of all CPUs.
#[derive(Default)]
struct Known {
    names: BTreeMap<Tid, String>,
    /// The current system call of each thread, for returns that do not name it.
    calls: HashMap<Tid, u16>,
}

/// The maximum number of remembered threads.
const MAX_THREADS: usize = 1 << 17;

/// The records of a CPU, in order.
struct Merged {
    pages: PageWriter<Store>,
    cpu: u32,
    running: Option<Tid>,
    /// Records from before the first switch, or the first one after a gap.
    waiting: Vec<(u64, Vec<u8>)>,
    /// The size of these records in bytes.
    size: usize,
    /// The number of records that arrived too late to be sorted.
    late: u64,
}

/// The maximum bytes of records that wait until their thread is known.
const MAX_WAITING: usize = 16 << 20;

impl Merged {
    fn read(
        &mut self,
        mut streams: Vec<Stream<'_>>,
        file: &Arc<str>,
        known: &mut Known,
        damage: &mut Vec<String>,
    ) -> Result<(), ReadError> {
        let mut unknown = 0;
        loop {
            let next = streams.iter().enumerate();
            let next = next.filter_map(|(index, stream)| Some((stream.current?.time, index)));
            let Some((_, index)) = next.min() else { break };
            unknown += failing(file, self.take(&mut streams[index], known))?;
            streams[index].advance()?;
        }
        unknown += failing(file, self.settle(0))?;
        let cpu = self.cpu;
        if unknown > 0 {
            damage.push(format!(
                "whose {unknown} events of CPU {cpu} are is not known, because no switch follows; they count as the idle thread's"
            ));
        }
        if self.late > 0 {
            damage.push(format!(
                "{} events of CPU {cpu} are older than those before, and count as of their time",
                self.late
            ));
        }
        damage.extend(streams.into_iter().filter_map(|stream| stream.cut));
        Ok(())
    }

    /// Takes the current event of a stream; returns how many belong to no known thread.
    fn take(&mut self, stream: &mut Stream<'_>, known: &mut Known) -> io::Result<u64> {
        let mut unknown = 0;
        if let Some(count) = stream.lost {
            unknown += self.settle(0)?;
            self.pages.missed(count)?;
            self.running = None;
        }
        let Some(current) = stream.current else { return Ok(unknown) };
        let mut by = current.by.or(self.running);
        match current.what {
            What::Nothing => {}
            What::Switch { from, to } => {
                self.settle(from)?;
                by = Some(from);
                self.running = Some(to);
            }
            What::Call(call) => {
                if let Some(by) = by.filter(|_| known.calls.len() < MAX_THREADS) {
                    known.calls.insert(by, call);
                }
            }
            What::Return(value) => {
                if let Some(call) = by.and_then(|by| known.calls.remove(&by)) {
                    stream.return_from(call, value);
                }
            }
            What::Name(thread) => {
                if known.names.len() < MAX_THREADS {
                    known.names.insert(thread, stream.name().to_owned());
                }
            }
        }
        let record = stream.record();
        if record.is_empty() {
            return Ok(unknown);
        }
        match by {
            Some(by) if self.waiting.is_empty() => self.push(current.time, record, by)?,
            _ => {
                if let Some(by) = by {
                    record[4..8].copy_from_slice(&by.to_ne_bytes());
                }
                self.size += record.len();
                self.waiting.push((current.time, record.clone()));
                if self.size > MAX_WAITING {
                    unknown += self.settle(0)?;
                }
            }
        }
        Ok(unknown)
    }

    /// Writes the waiting records, with this thread if theirs is unknown; returns how many had
    /// none.
    fn settle(&mut self, by: Tid) -> io::Result<u64> {
        let mut count = 0;
        self.size = 0;
        for (time, mut record) in std::mem::take(&mut self.waiting) {
            let own = Tid::from_ne_bytes([record[4], record[5], record[6], record[7]]);
            count += u64::from(own == 0);
            self.push(time, &mut record, if own == 0 { by } else { own })?;
        }
        Ok(count)
    }

    fn push(&mut self, time: u64, record: &mut [u8], by: Tid) -> io::Result<()> {
        record[4..8].copy_from_slice(&by.to_ne_bytes());
        self.late += u64::from(time < self.pages.last());
        self.pages.push(time.max(self.pages.last()), record)
    }
}
