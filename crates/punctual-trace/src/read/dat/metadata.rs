//! The parts common to both versions: formats, symbols, thread names, options.

use std::sync::Arc;

use super::content::Texts;
use super::reader::Reader;
use crate::format::dat::{WRITER, clock_of, id};
use crate::format::fields::{EventFormat, FormatError, PageLayout, check_header_event};
use crate::read::error::ReadError;
use crate::read::expansion::Unpacked;
use crate::read::stream::Scale;
use crate::read::{Buffer, Bytes, CpuData, Order, Recorder, Trace};

/// Format files take a few KiB; those of drivers with long lists of flags, tens.
const FORMAT_LIMIT: u64 = 1 << 20;
/// Event IDs have 16 bits.
const FORMATS_LIMIT: usize = 1 << 16;
/// The maximum number of unreadable formats that are kept.
const UNREADABLE_LIMIT: usize = 16;
/// `/proc/kallsyms` has tens of MB with many modules.
const SYMBOLS_LIMIT: u32 = 256 << 20;
/// The names of the maximum number of threads of a system, in lines of 24 bytes.
const NAMES_LIMIT: u64 = 16 << 20;

/// The functions of the kernel that enter the scheduler, none of which calls another.
const SCHEDULER: [&[u8]; 6] = [
    b"schedule",
    b"schedule_idle",
    b"schedule_rtlock",
    b"preempt_schedule",
    b"preempt_schedule_notrace",
    b"preempt_schedule_irq",
];

/// The function of the timers that give SCHED_DEADLINE threads their runtime.
pub(crate) const BUDGET_TIMER: &[u8] = b"dl_task_timer";

/// The addresses of functions of the kernel that events refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions {
    /// The functions that enter the scheduler.
    pub(crate) schedule: Vec<u64>,
    /// The function of the timers that give SCHED_DEADLINE threads their runtime; 0 if unknown.
    pub(crate) budget_timer: u64,
}

impl Functions {
    /// Returns the functions in a file like `/proc/kallsyms`.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut functions = Self::default();
        text.split(|&byte| byte == b'\n').for_each(|line| functions.take(line));
        functions
    }

    /// Stores the address in a line of such a file, if it is needed.
    fn take(&mut self, line: &[u8]) {
        let mut words = line.split(|byte| byte.is_ascii_whitespace());
        let (Some(address), Some(_), Some(name)) = (words.next(), words.next(), words.next()) else { return };
        let address = || u64::from_str_radix(str::from_utf8(address).ok()?, 16).ok().filter(|&at| at != 0);
        if SCHEDULER.contains(&name) {
            self.schedule.extend(address());
        } else if name == BUDGET_TIMER {
            self.budget_timer = address().unwrap_or(0);
        }
    }
}

/// The data read from a file so far.
pub(super) struct Metadata {
    pub(super) file: Arc<str>,
    pub(super) bytes: Arc<dyn Bytes>,
    pub(super) length: u64,
    /// The number of bytes decompressed so far.
    pub(super) unpacked: Unpacked,
    pub(super) buffers: Vec<Buffer>,
    pub(super) clock: String,
    pub(super) system: String,
    pub(super) statistics: Vec<String>,
    pub(super) scale: Option<Scale>,
    pub(super) declared: Option<String>,
    pub(super) cpus: u32,
    pub(super) layout: Option<PageLayout>,
    /// Missing or guessed parts.
    pub(super) damage: Vec<String>,
    /// The parts verbatim, if requested.
    pub(super) texts: Option<Texts>,
    formats: Vec<EventFormat>,
    unreadable: Vec<(String, FormatError)>,
    threads: Vec<u8>,
    functions: Functions,
}

impl Metadata {
    pub(super) fn new(file: Arc<str>, bytes: Arc<dyn Bytes>, length: u64) -> Self {
        Self {
            file,
            bytes,
            length,
            unpacked: Unpacked::default(),
            buffers: Vec::new(),
            clock: String::new(),
            system: String::new(),
            statistics: Vec::new(),
            scale: None,
            declared: None,
            cpus: 0,
            layout: None,
            damage: Vec::new(),
            texts: None,
            formats: Vec::new(),
            unreadable: Vec::new(),
            threads: Vec::new(),
            functions: Functions::default(),
        }
    }

    /// Discards the data read so far.
    pub(super) fn restart(&mut self) {
        let (file, bytes) = (self.file.clone(), self.bytes.clone());
        let texts = self.texts.take().map(|_| Texts::default());
        let unpacked = self.unpacked.clone();
        *self = Self { texts, unpacked, ..Self::new(file, bytes, self.length) };
    }

    /// Returns the error for a part missing from the file.
    pub(super) fn missing(&self, what: &str) -> ReadError {
        let problem = format!("there is no {what} in the file");
        ReadError::Corrupt { file: self.file.clone(), offset: self.length, problem }
    }

    /// Reads `header_page` and `header_event`.
    pub(super) fn header_info(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let file = self.file.clone();
        let wrong = |offset| {
            let file = file.clone();
            move |error| ReadError::Format { file, offset, error }
        };
        let page = named(reader, "header_page")?;
        let offset = reader.offset();
        let layout = PageLayout::parse(&page, reader.order).map_err(wrong(offset))?;
        self.layout = Some(layout);
        let event = named(reader, "header_event")?;
        check_header_event(&event).map_err(wrong(reader.offset()))?;
        if let Some(texts) = &mut self.texts {
            (texts.header_page, texts.header_event) = (page, event);
        }
        Ok(())
    }

    fn format(&mut self, reader: &mut Reader, system: &str) -> Result<(), ReadError> {
        let length = reader.u64()?;
        if length > FORMAT_LIMIT {
            return Err(reader.corrupt(format!("a format of {system} is declared to have {length} bytes")));
        }
        if self.formats.len() == FORMATS_LIMIT {
            return Err(reader.corrupt(format!("there are more than {FORMATS_LIMIT} formats")));
        }
        let text = reader.bytes(length, "the formats of events")?;
        if let Some(texts) = &mut self.texts {
            texts.format(system, &text);
        }
        match EventFormat::parse(system, &text) {
            Ok(format) => self.formats.push(format),
            Err(error) if self.unreadable.len() < UNREADABLE_LIMIT => {
                let start = String::from_utf8_lossy(&text[..text.len().min(64)]);
                let name = start.lines().next().unwrap_or_default().trim_start_matches("name: ");
                self.unreadable.push((format!("{system}:{name}"), error));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Reads the formats of the group `ftrace`.
    pub(super) fn ftrace_events(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        for _ in 0..reader.u32()? {
            self.format(reader, "ftrace")?;
        }
        Ok(())
    }

    /// Reads the formats of the other groups.
    pub(super) fn event_formats(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        for _ in 0..reader.u32()? {
            let system = reader.string("the name of a group of events", 256)?;
            for _ in 0..reader.u32()? {
                self.format(reader, &system)?;
            }
        }
        Ok(())
    }

    /// Reads the addresses of functions and stores those of the scheduler.
    pub(super) fn symbols(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let length = symbols_length(reader, "the symbols of the kernel claim")?;
        if let Some(texts) = &mut self.texts {
            texts.symbols = reader.bytes(length.into(), "the symbols of the kernel")?;
            self.functions = Functions::of(&texts.symbols);
            return Ok(());
        }
        let functions = &mut self.functions;
        reader.lines(length.into(), |line| functions.take(line))
    }

    /// Skips the format strings of `trace_printk`, which are not needed here.
    pub(super) fn printk(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let length = symbols_length(reader, "the texts of trace_printk claim")?;
        if let Some(texts) = &mut self.texts {
            texts.printk = reader.bytes(length.into(), "the texts of trace_printk")?;
            return Ok(());
        }
        reader.lines(length.into(), |_| {})
    }

    /// Reads the names of threads.
    pub(super) fn names(&mut self, reader: &mut Reader) -> Result<(), ReadError> {
        let length = reader.u64()?;
        if length > NAMES_LIMIT {
            return Err(reader.corrupt(format!("the names of threads are declared to have {length} bytes")));
        }
        self.threads = reader.bytes(length, "the names of threads")?;
        Ok(())
    }

    /// Rejects a file in which several CPUs claim the same data: a short file could then take
    /// hours, since it is read for each of them.
    pub(super) fn check_overlaps(&self) -> Result<(), ReadError> {
        let data = self.buffers.iter().flat_map(|buffer| &buffer.cpus);
        // The length of compressed data is unknown.
        let length = |data: &CpuData| if data.packed.is_some() { 1 } else { data.length };
        let range = |data: &CpuData| (data.start, data.start.saturating_add(length(data)).min(self.length));
        let mut ranges: Vec<(u64, u64)> = data.map(range).collect();
        ranges.sort_unstable();
        let Some(pair) = ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) else { return Ok(()) };
        let problem = "the data of a CPU overlaps with that of another".to_owned();
        Err(ReadError::Corrupt { file: self.file.clone(), offset: pair[1].0, problem })
    }

    /// Builds the trace from everything read.
    pub(super) fn finish(self) -> Result<Trace, ReadError> {
        let layout = self.layout.ok_or_else(|| self.missing("header_page"))?;
        if self.buffers.iter().all(|buffer| buffer.cpus.is_empty()) {
            return Err(ReadError::Empty { file: self.file.clone() });
        }
        Ok(Trace {
            file: self.file,
            layout,
            formats: self.formats,
            unreadable: self.unreadable,
            buffers: self.buffers,
            threads: self.threads,
            functions: self.functions,
            clock: self.clock,
            system: self.system,
            statistics: self.statistics,
            scale: self.scale,
            // Only our recorder declares which events it has recorded.
            recorder: if self.declared.is_some() { Recorder::Punctual } else { Recorder::TraceCmd },
            declared: self.declared,
            damage: self.damage,
            other_samples: 0,
        })
    }
}

/// Reads the length of symbols or of texts of the kernel.
fn symbols_length(reader: &mut Reader, what: &str) -> Result<u32, ReadError> {
    let length = reader.u32()?;
    if length > SYMBOLS_LIMIT {
        return Err(reader.corrupt(format!("{what} to have {length} bytes")));
    }
    Ok(length)
}

/// Reads the content after a name: a length and that many bytes.
fn named(reader: &mut Reader, name: &'static str) -> Result<Vec<u8>, ReadError> {
    let found = reader.string("the headers of the ring buffer", 16)?;
    if found != name {
        return Err(reader.corrupt(format!("`{name}` should be here, and `{}` is", found.escape_debug())));
    }
    let length = reader.u64()?;
    if length > FORMAT_LIMIT {
        return Err(reader.corrupt(format!("{name} is declared to have {length} bytes")));
    }
    reader.bytes(length, name)
}

/// Returns a number in the byte order of options.
pub(super) fn number(order: Order, data: &[u8], at: usize) -> u64 {
    order.u64(data, at).unwrap_or_default()
}

/// An option holds at most a few bytes per CPU, or the text of a statistics file.
const OPTION_LIMIT: u32 = 4 << 20;
/// Statistics of further CPUs are ignored.
const STATISTICS_LIMIT: usize = 4096;

/// Returns the content of the next option, after its ID.
pub(super) fn option_content(reader: &mut Reader, option: u16) -> Result<Vec<u8>, ReadError> {
    let length = reader.u32()?;
    if length > OPTION_LIMIT {
        return Err(reader.corrupt(format!("option {option} claims {length} bytes")));
    }
    reader.bytes(length.into(), "the options")
}

/// Handles options with the same meaning in both versions; returns whether this was one.
pub(super) fn common_option(metadata: &mut Metadata, order: Order, option: u16, data: &[u8]) -> bool {
    let text = || String::from_utf8_lossy(data).trim_end_matches(['\0', '\n']).to_owned();
    match option {
        id::CPUSTAT if metadata.statistics.len() < STATISTICS_LIMIT => metadata.statistics.push(text()),
        id::TRACECLOCK => metadata.clock = clock_of(&text()).to_owned(),
        id::UNAME => metadata.system = text(),
        id::VERSION => metadata.declared = text().strip_prefix(WRITER).map(str::to_owned),
        id::CPUCOUNT => metadata.cpus = order.u32(data, 0).unwrap_or(metadata.cpus),
        id::TSC2NSEC if data.len() >= 16 => {
            let half = |at| order.u32(data, at).unwrap_or_default();
            let scale = Scale { factor: half(0), shift: half(4), offset: number(order, data, 8) };
            metadata.scale = (scale.factor != 0).then_some(scale);
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_symbols_beyond_limit() {
        let read = |length: u32| {
            let bytes = length.to_le_bytes().to_vec();
            symbols_length(&mut Reader::unpacked("file".into(), bytes, 0, Order::Little), "they claim")
        };
        assert_eq!(read(SYMBOLS_LIMIT).unwrap(), SYMBOLS_LIMIT);
        let error = read(SYMBOLS_LIMIT + 1).unwrap_err();
        assert!(error.to_string().contains("they claim to have 268435457 bytes"), "{error}");
    }
}
