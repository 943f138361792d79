//! The parts of the file: its header, the list of recorded events, and the records.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use super::sample::{Fields, Sample};
use crate::read::error::ReadError;
use crate::read::{Bytes, Order, Range};

const HEADER: usize = 104;
/// The header size of a file written through a pipe.
const PIPE_HEADER: u64 = 16;
/// The feature numbers of interest.
const TRACING_DATA: usize = 1;
const HOST: usize = 3;
const RELEASE: usize = 4;
const ARCHITECTURE: usize = 6;
const TRACEPOINT: u32 = 2;
const USE_CLOCK: u64 = 1 << 25;
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// More events, or more IDs per event, are rejected.
const MAX_ATTRIBUTES: u64 = 1 << 16;
const MAX_IDS: usize = 1 << 20;

/// The location of the parts.
pub(super) struct Header {
    pub(super) order: Order,
    attribute_size: u64,
    attributes: (u64, u64),
    /// The range of the records.
    pub(super) data: (u64, u64),
    /// The range of the event formats.
    pub(super) tracing_data: Option<(u64, u64)>,
    /// As `uname` has it.
    pub(super) system: String,
}

/// Reads exactly that many bytes, if they exist.
fn exactly(
    name: &Arc<str>,
    bytes: &Arc<dyn Bytes>,
    at: u64,
    length: usize,
    what: &str,
) -> Result<Vec<u8>, ReadError> {
    let mut content = vec![0; length];
    let end = at.saturating_add(length as u64);
    match Range::new(bytes.clone(), at, end).read_exact(&mut content) {
        Ok(()) => Ok(content),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(ReadError::Truncated { file: name.clone(), offset: at, what: what.to_owned() })
        }
        Err(error) => Err(ReadError::Io { file: name.clone(), offset: at, error }),
    }
}

impl Header {
    /// The byte order of a file that begins like this, if it is a perf.data.
    pub(super) fn order(start: &[u8]) -> Option<Order> {
        match start.get(..8)? {
            b"PERFILE2" => Some(Order::Little),
            b"2ELIFREP" => Some(Order::Big),
            _ => None,
        }
    }

    pub(super) fn read(name: &Arc<str>, bytes: &Arc<dyn Bytes>) -> Result<Self, ReadError> {
        let start = exactly(name, bytes, 0, 16, "the header")?;
        let order = Self::order(&start).ok_or_else(|| ReadError::NotATrace { file: name.clone() })?;
        if order.u64(&start, 8) == Some(PIPE_HEADER) {
            let what = "this was written through a pipe; make a file of it with `perf inject -i FILE -o OTHER`, or record with \
                        `perf record -o FILE`";
            return Err(ReadError::Unsupported { file: name.clone(), offset: 8, what: what.to_owned() });
        }
        let header = exactly(name, bytes, 0, HEADER, "the header")?;
        let number = |at| order.u64(&header, at).unwrap_or_default();
        let part = |at| (number(at), number(at).saturating_add(number(at + 8)));
        let mut found = Self {
            order,
            attribute_size: number(16),
            attributes: part(24),
            data: part(40),
            tracing_data: None,
            system: String::new(),
        };
        // The table of features follows the data, in the order of their numbers.
        let is_set = |feature: &usize| number(72 + feature / 64 * 8) >> (feature % 64) & 1 == 1;
        let mut texts = Vec::new();
        for (index, feature) in (0..256).filter(is_set).enumerate() {
            let at = found.data.1.saturating_add(16 * index as u64);
            let place =
                exactly(name, bytes, at, 16, "the list of what describes it, which follows the data")?;
            let at = order.u64(&place, 0).unwrap_or_default();
            let length = order.u64(&place, 8).unwrap_or_default();
            match feature {
                TRACING_DATA => found.tracing_data = Some((at, at.saturating_add(length))),
                HOST | RELEASE | ARCHITECTURE => texts.extend(text(name, bytes, order, at, length)),
                _ => {}
            }
        }
        found.system = [vec!["Linux".to_owned()], texts].concat().join(" ");
        Ok(found)
    }

    /// What was recorded.
    pub(super) fn attributes(
        &self,
        name: &Arc<str>,
        bytes: &Arc<dyn Bytes>,
    ) -> Result<Attributes, ReadError> {
        let (order, (start, end)) = (self.order, self.attributes);
        let size = self.attribute_size;
        let count = (end - start).checked_div(size).unwrap_or(0);
        if !(80..=4096).contains(&size) || count == 0 || count > MAX_ATTRIBUTES {
            let problem = format!("the file says to have {count} events, described in {size} bytes each");
            return Err(ReadError::Corrupt { file: name.clone(), offset: 16, problem });
        }
        let mut found = Attributes { events: Vec::new(), by_id: HashMap::new() };
        // Several may share the same IDs.
        let mut room = MAX_IDS;
        for index in 0..count {
            let attribute =
                exactly(name, bytes, start + index * size, size as usize, "the description of an event")?;
            let number = |at| order.u64(&attribute, at).unwrap_or_default();
            let flags = number(40);
            // Files have the clock ID since Linux 4.1.
            let has_clock = flags & USE_CLOCK != 0 && size >= 96 + 16;
            let clock = has_clock.then(|| order.u32(&attribute, 92)).flatten();
            let event = Event {
                is_tracepoint: order.u32(&attribute, 0) == Some(TRACEPOINT),
                fields: Fields { sample_type: number(24), read_format: number(32) },
                places: flags & SAMPLE_ID_ALL != 0,
                clock,
            };
            let (at, length) = (number(size as usize - 16), number(size as usize - 8));
            let ids = usize::try_from(length / 8).unwrap_or(usize::MAX).min(room);
            room -= ids;
            let ids = exactly(name, bytes, at, 8 * ids, "the numbers of an event")?;
            for id in ids.chunks_exact(8).filter_map(|id| order.u64(id, 0)) {
                found.by_id.insert(id, found.events.len());
            }
            found.events.push(event);
        }
        Ok(found)
    }

    pub(super) fn records(&self, bytes: &Arc<dyn Bytes>) -> Records {
        let (start, end) = self.data;
        let range = Range::new(bytes.clone(), start, end);
        let file = BufReader::with_capacity(256 << 10, range);
        Records { order: self.order, file, at: start, end, body: Vec::new(), cut: None, places: None }
    }
}

/// A string of a feature: its length and its bytes.
fn text(name: &Arc<str>, bytes: &Arc<dyn Bytes>, order: Order, at: u64, length: u64) -> Option<String> {
    let content = exactly(name, bytes, at, length.min(512) as usize, "a feature").ok()?;
    let used = usize::try_from(order.u32(&content, 0)?).ok()?;
    let text = content.get(4..)?;
    let text = &text[..text.len().min(used)];
    let text = text.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// A recorded event.
#[derive(Debug, Clone, Copy)]
struct Event {
    is_tracepoint: bool,
    fields: Fields,
    /// Whether records other than samples say when and where they were written.
    places: bool,
    clock: Option<u32>,
}

/// The recorded events, and which records belong to them.
pub(super) struct Attributes {
    events: Vec<Event>,
    by_id: HashMap<u64, usize>,
}

impl Attributes {
    /// Parses a sample, if it is a tracepoint's.
    pub(super) fn sample<'a>(&self, order: Order, body: &'a [u8]) -> Option<Sample<'a>> {
        let first = self.events.first()?;
        // All samples have the ID of their event in the same place, or all have the same fields.
        let event = match first.fields.id_at() {
            Some(at) if self.events.len() > 1 || at == 0 => {
                self.events.get(*self.by_id.get(&order.u64(body, at)?)?)?
            }
            _ => first,
        };
        event.fields.sample(order, body).filter(|_| event.is_tracepoint)
    }

    /// The trace clock of the timestamps.
    pub(super) fn clock(&self) -> &'static str {
        match self.events.first().and_then(|event| event.clock) {
            None => "local",
            Some(0) => "realtime",
            Some(1) => "mono",
            Some(4) => "mono_raw",
            Some(7) => "boot",
            Some(11) => "tai",
            Some(_) => "perf",
        }
    }

    fn places(&self) -> Option<Fields> {
        self.events.first().filter(|event| event.places).map(|event| event.fields)
    }
}

/// A record of the data.
pub(super) enum Record<'a> {
    Sample(&'a [u8]),
    Lost {
        count: u64,
        time: u64,
        cpu: Option<u32>,
    },
    Name {
        thread: u32,
        name: String,
    },
    /// The formats of events are between these offsets, where the header does not say so.
    Formats(u64, u64),
    /// Everything from here on is newer than everything before the previous one of these.
    Round,
    /// It contains other records.
    Packed,
    Other,
}

/// Reads the records in sequence.
pub(super) struct Records {
    order: Order,
    file: BufReader<Range>,
    at: u64,
    end: u64,
    body: Vec<u8>,
    cut: Option<u64>,
    places: Option<Fields>,
}

impl Records {
    /// What records other than samples end with.
    pub(super) fn with(mut self, attributes: &Attributes) -> Self {
        self.places = attributes.places();
        self
    }

    pub(super) fn offset(&self) -> u64 {
        self.at
    }

    /// Where the data is cut off, if it is.
    pub(super) fn cut(&self) -> Option<u64> {
        self.cut
    }

    fn fill(&mut self, name: &Arc<str>, length: usize) -> Result<bool, ReadError> {
        self.body.resize(length, 0);
        match self.file.read_exact(&mut self.body) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut = Some(self.at);
                Ok(false)
            }
            Err(error) => Err(ReadError::Io { file: name.clone(), offset: self.at, error }),
        }
    }

    /// The next record; `None` at the end, or where the data is cut off.
    pub(super) fn next(&mut self, name: &Arc<str>) -> Result<Option<Record<'_>>, ReadError> {
        if self.at >= self.end || !self.fill(name, 8)? {
            return Ok(None);
        }
        let kind = self.order.u32(&self.body, 0).unwrap_or_default();
        let size = self.order.u16(&self.body, 6).unwrap_or_default();
        if size < 8 {
            let problem = format!("a record says to have {size} bytes");
            return Err(ReadError::Corrupt { file: name.clone(), offset: self.at, problem });
        }
        if !self.fill(name, usize::from(size) - 8)? {
            return Ok(None);
        }
        let content = self.at + 8;
        self.at += u64::from(size);
        let (order, body) = (self.order, &self.body[..]);
        Ok(Some(match kind {
            9 => Record::Sample(body),
            // The records of lost events and of lost samples have the count in different places.
            2 | 13 => {
                let count = order.u64(body, if kind == 2 { 8 } else { 0 }).unwrap_or_default();
                let (time, cpu) = self.places.map_or((0, None), |fields| fields.place(order, body));
                Record::Lost { count, time, cpu }
            }
            3 => {
                let thread = order.u32(body, 4).unwrap_or_default();
                let text =
                    body.get(8..).unwrap_or_default().split(|&byte| byte == 0).next().unwrap_or_default();
                Record::Name { thread, name: String::from_utf8_lossy(text).into_owned() }
            }
            // Only simpleperf, Android's recorder, puts the formats here.
            66 => {
                let length = u64::from(order.u32(body, 0).unwrap_or_default());
                Record::Formats(content + 4, (content + 4).saturating_add(length).min(self.at))
            }
            68 => Record::Round,
            81 | 83 => Record::Packed,
            _ => Record::Other,
        }))
    }
}
