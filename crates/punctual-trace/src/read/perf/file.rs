//! Header of the file, and the list of recorded events.

use std::collections::HashMap;
use std::io::{self, Read};
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
/// Features with longer contents are cut.
const MAX_TEXT: u64 = 512;
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
    /// Parts of what `uname` prints.
    system: Vec<String>,
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
    /// Returns the byte order of a file that begins like this, if it is a perf.data.
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
            // The records contain everything else.
            let length =
                bytes.length().map_err(|error| ReadError::Io { file: name.clone(), offset: 0, error })?;
            return Ok(Self {
                order,
                attribute_size: 0,
                attributes: (0, 0),
                data: (PIPE_HEADER, length),
                tracing_data: None,
                system: Vec::new(),
            });
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
            system: Vec::new(),
        };
        // The table of features follows the data, in the order of their numbers.
        let is_set = |feature: &usize| number(72 + feature / 64 * 8) >> (feature % 64) & 1 == 1;
        for (index, feature) in (0..256).filter(is_set).enumerate() {
            let at = found.data.1.saturating_add(16 * index as u64);
            let place =
                exactly(name, bytes, at, 16, "the list of what describes it, which follows the data")?;
            let at = order.u64(&place, 0).unwrap_or_default();
            let length = order.u64(&place, 8).unwrap_or_default();
            match feature {
                TRACING_DATA => found.tracing_data = Some((at, at.saturating_add(length))),
                feature => {
                    let content = exactly(name, bytes, at, length.min(MAX_TEXT) as usize, "a feature");
                    found.describe(feature, &content.unwrap_or_default());
                }
            }
        }
        Ok(found)
    }

    /// Adds a feature, if `uname` prints it: a string that follows its length.
    pub(super) fn describe(&mut self, feature: usize, content: &[u8]) {
        let Some(length) =
            self.order.u32(content, 0).filter(|_| matches!(feature, HOST | RELEASE | ARCHITECTURE))
        else {
            return;
        };
        let text = content.get(4..).unwrap_or_default();
        let text = &text[..text.len().min(length as usize)];
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        self.system.push(String::from_utf8_lossy(text).into_owned());
    }

    /// Returns the recorded system, as `uname` prints it.
    pub(super) fn system(&self) -> String {
        ["Linux"].into_iter().chain(self.system.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    }

    /// Reads the list of recorded events.
    pub(super) fn attributes(
        &self,
        name: &Arc<str>,
        bytes: &Arc<dyn Bytes>,
    ) -> Result<Attributes, ReadError> {
        let (order, (start, end)) = (self.order, self.attributes);
        let mut found = Attributes { events: Vec::new(), by_id: HashMap::new(), ids: 0 };
        if self.data.0 == PIPE_HEADER {
            return Ok(found);
        }
        let size = self.attribute_size;
        let count = (end - start).checked_div(size).unwrap_or(0);
        if !(80..=4096).contains(&size) || count == 0 || count > MAX_ATTRIBUTES {
            let problem = format!("the file declares {count} events, described in {size} bytes each");
            return Err(ReadError::Corrupt { file: name.clone(), offset: 16, problem });
        }
        for index in 0..count {
            let attribute =
                exactly(name, bytes, start + index * size, size as usize, "the description of an event")?;
            let number = |at| order.u64(&attribute, at).unwrap_or_default();
            // The position of the IDs comes last.
            let (at, length) = (number(size as usize - 16), number(size as usize - 8));
            let ids = usize::try_from(length / 8).unwrap_or(usize::MAX).min(found.room());
            let ids = exactly(name, bytes, at, 8 * ids, "the numbers of an event")?;
            found.add(order, &attribute[..size as usize - 16], &ids);
        }
        Ok(found)
    }
}

/// A recorded event.
#[derive(Debug, Clone, Copy)]
struct Event {
    is_tracepoint: bool,
    fields: Fields,
    /// True if records other than samples contain their time and CPU.
    sample_id: bool,
    clock: Option<u32>,
}

/// A parsed sample.
pub(super) enum Parsed<'a> {
    Tracepoint(Sample<'a>),
    /// Of another event than a tracepoint.
    Other,
    Damaged,
}

/// The recorded events, and the assignment of records to them.
pub(super) struct Attributes {
    events: Vec<Event>,
    by_id: HashMap<u64, usize>,
    /// The number of IDs read, also of equal ones.
    ids: usize,
}

impl Attributes {
    /// Returns how many more IDs fit.
    fn room(&self) -> usize {
        MAX_IDS.saturating_sub(self.ids)
    }

    /// Adds an event with its `perf_event_attr` and its IDs.
    fn add(&mut self, order: Order, attribute: &[u8], ids: &[u8]) {
        let number = |at| order.u64(attribute, at).unwrap_or_default();
        let flags = number(40);
        // Files have the ID of the clock since Linux 4.1.
        let has_clock = flags & USE_CLOCK != 0;
        let event = Event {
            is_tracepoint: order.u32(attribute, 0) == Some(TRACEPOINT),
            fields: Fields { sample_type: number(24), read_format: number(32) },
            sample_id: flags & SAMPLE_ID_ALL != 0,
            clock: has_clock.then(|| order.u32(attribute, 92)).flatten(),
        };
        for id in ids.chunks_exact(8).take(self.room()).filter_map(|id| order.u64(id, 0)) {
            self.by_id.insert(id, self.events.len());
            self.ids += 1;
        }
        self.events.push(event);
    }

    /// Adds an event from a record that describes it, as in files written through a pipe.
    pub(super) fn add_record(&mut self, order: Order, body: &[u8]) {
        let size = order.u32(body, 4).unwrap_or_default() as usize;
        if let Some((attribute, ids)) = body.split_at_checked(size)
            && self.events.len() < MAX_ATTRIBUTES as usize
        {
            self.add(order, attribute, ids);
        }
    }

    /// Parses a sample.
    pub(super) fn sample<'a>(&self, order: Order, body: &'a [u8]) -> Parsed<'a> {
        let Some(event) = self.event_of(order, body) else { return Parsed::Damaged };
        if !event.is_tracepoint {
            return Parsed::Other;
        }
        event.fields.sample(order, body).map_or(Parsed::Damaged, Parsed::Tracepoint)
    }

    fn event_of(&self, order: Order, body: &[u8]) -> Option<&Event> {
        let first = self.events.first()?;
        // All samples have the ID of their event in the same place, or all have the same fields.
        match first.fields.id_at() {
            Some(at) if self.events.len() > 1 || at == 0 => {
                self.events.get(*self.by_id.get(&order.u64(body, at)?)?)
            }
            _ => Some(first),
        }
    }

    /// Returns the trace clock of the timestamps.
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

    /// Returns the fields at the end of records other than samples, if they have any.
    pub(super) fn sample_id(&self) -> Option<Fields> {
        self.events.first().filter(|event| event.sample_id).map(|event| event.fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short file may contain one list of IDs, to which the descriptions of all events refer.
    #[test]
    fn limits_number_of_equal_ids() {
        let mut attributes = Attributes { events: Vec::new(), by_id: HashMap::new(), ids: 0 };
        for events in 1..=3 {
            attributes.add(Order::Little, &[0; 64], &[7; 8 * MAX_IDS / 2]);
            assert_eq!(attributes.room(), MAX_IDS.saturating_sub(events * MAX_IDS / 2));
        }
    }
}
