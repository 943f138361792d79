//! A stream file of a trace: a sequence of packets of timestamped events.

use std::io::Read;
use std::sync::Arc;

use super::kernel::{Classes, Meaning};
use super::tsdl::{self, Metadata};
use super::types::{Bits, Leaf, Value, number};
use crate::event::Tid;
use crate::read::error::ReadError;
use crate::read::{Bytes, Range};

/// The magic number of every packet.
const MAGIC: u64 = 0xc1fc_1fc1;
/// Larger packets are rejected.
const MAX_PACKET: u64 = 256 << 20;
/// The maximum length of a packet's headers.
const MAX_HEADER: u64 = 4096;

/// A stream being read.
pub(super) struct Stream<'m> {
    file: Arc<str>,
    bytes: Arc<dyn Bytes>,
    length: u64,
    declared: &'m Metadata,
    classes: &'m Classes,
    /// The offset of the next packet.
    next: u64,
    packet: Vec<u8>,
    /// The start of the packet and of its next event, and the end of its content, in bits.
    start: u64,
    at: u64,
    end: u64,
    pub(super) cpu: u32,
    id: u64,
    /// The time of the last event, by the trace's clock.
    time: u64,
    discarded: Option<u64>,
    sequence: Option<u64>,
    /// The number of events missing before the current one; 0 if unknown.
    pub(super) lost: Option<u64>,
    /// The current event, unless the stream has ended.
    pub(super) current: Option<Current>,
    record: Vec<u8>,
    name: String,
    /// The error in the rest of the file.
    pub(super) cut: Option<String>,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Current {
    /// In ns.
    pub(super) time: u64,
    /// The running thread, if the trace records it with each event.
    pub(super) by: Option<Tid>,
    pub(super) what: What,
}

/// Its meaning beyond its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Nothing,
    Switch {
        from: Tid,
        to: Tid,
    },
    /// A system call begins.
    Call(u16),
    /// An unnamed system call returns this.
    Return(u64),
    /// Names a thread.
    Name(Tid),
}

impl<'m> Stream<'m> {
    /// Opens a stream and reads up to its first event.
    pub(super) fn open(
        file: Arc<str>,
        bytes: Arc<dyn Bytes>,
        declared: &'m Metadata,
        classes: &'m Classes,
    ) -> Result<Self, ReadError> {
        let length =
            bytes.length().map_err(|error| ReadError::Io { file: file.clone(), offset: 0, error })?;
        let mut stream = Self {
            file,
            bytes,
            length,
            declared,
            classes,
            next: 0,
            packet: Vec::new(),
            start: 0,
            at: 0,
            end: 0,
            cpu: 0,
            id: 0,
            time: 0,
            discarded: None,
            sequence: None,
            lost: None,
            current: None,
            record: Vec::new(),
            name: String::new(),
            cut: None,
        };
        stream.advance()?;
        Ok(stream)
    }

    /// Returns the record of the current event.
    pub(super) fn record(&mut self) -> &mut Vec<u8> {
        &mut self.record
    }

    /// Returns the name in the current event.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes the current event the return from that system call, with that result.
    pub(super) fn return_from(&mut self, call: u16, value: u64) {
        if let Some(class) = self.classes.return_of(call) {
            class.encode(&[Leaf::number("_ret", value)], &mut self.record);
        }
    }

    /// Advances to the next event.
    pub(super) fn advance(&mut self) -> Result<(), ReadError> {
        self.lost = None;
        self.current = None;
        while self.cut.is_none() {
            if self.at >= self.end {
                if !self.next_packet()? {
                    break;
                }
                continue;
            }
            let packet = std::mem::take(&mut self.packet);
            let read = self.event(&packet);
            self.packet = packet;
            match read {
                Ok(None) => self.at = self.end,
                Ok(current) => {
                    self.current = current;
                    break;
                }
                Err(problem) => {
                    let byte = self.start + self.at / 8;
                    self.cut = Some(format!("{}: byte {byte}: {problem}; the rest is left out", self.file));
                }
            }
        }
        Ok(())
    }

    fn failed(&self, error: std::io::Error) -> ReadError {
        ReadError::Io { file: self.file.clone(), offset: self.next, error }
    }

    /// Reads the next packet; returns whether there is one.
    fn next_packet(&mut self) -> Result<bool, ReadError> {
        let left = self.length.saturating_sub(self.next);
        if left == 0 {
            if self.next > self.length {
                self.cut = Some(format!("{}: byte {}: the file ends in a packet", self.file, self.length));
            }
            return Ok(false);
        }
        let mut head = vec![0; left.min(MAX_HEADER) as usize];
        let range = |length| Range::new(self.bytes.clone(), self.next, self.next + length);
        range(head.len() as u64).read_exact(&mut head).map_err(|error| self.failed(error))?;
        let header = match self.header(&head, left) {
            Ok(header) => header,
            Err(problem) => {
                self.cut =
                    Some(format!("{}: byte {}: {problem}; the rest is left out", self.file, self.next));
                return Ok(false);
            }
        };
        let Header { size, content, begin, .. } = header;
        let mut packet = vec![0; content.div_ceil(8).min(left) as usize];
        range(packet.len() as u64).read_exact(&mut packet).map_err(|error| self.failed(error))?;
        if self.start == 0 && self.next == 0 {
            self.cpu = header.cpu;
        } else if self.cpu != header.cpu {
            let (file, offset) = (self.file.clone(), self.next);
            let problem = format!("a packet of CPU {} follows one of CPU {}", header.cpu, self.cpu);
            return Err(ReadError::Corrupt { file, offset, problem });
        }
        self.count_losses(&header);
        self.packet = packet;
        (self.start, self.at, self.end) = (self.next, header.events, content.min(8 * left));
        self.next = self.next.saturating_add(size / 8);
        self.id = header.stream;
        self.time = begin.unwrap_or(self.time);
        Ok(true)
    }

    /// Counts the events that a packet reports as lost since the previous one.
    fn count_losses(&mut self, header: &Header) {
        let before = self.discarded.zip(header.discarded);
        let discarded = before.map_or(0, |(before, now)| now.saturating_sub(before));
        let skipped =
            self.sequence.zip(header.sequence).is_some_and(|(before, now)| now != before.wrapping_add(1));
        if discarded > 0 || skipped {
            let before = self.lost.unwrap_or(0);
            self.lost = Some(if skipped { 0 } else { before + discarded });
        }
        (self.discarded, self.sequence) = (header.discarded, header.sequence);
    }

    fn header(&self, head: &[u8], left: u64) -> Result<Header, String> {
        let mut bits = Bits::new(head, 8 * head.len() as u64);
        let mut leaves = Vec::new();
        let too_short = |_| "the header of a packet is cut off or invalid".to_owned();
        if let Some(of) = &self.declared.packet_header {
            bits.read("", of, &mut leaves).map_err(too_short)?;
            if number(&leaves, "magic").is_some_and(|magic| magic & 0xffff_ffff != MAGIC) {
                return Err("a packet is missing here".to_owned());
            }
        }
        let stream = number(&leaves, "stream_id").unwrap_or(0);
        let Some(declared) = self.declared.streams.get(&stream) else {
            return Err(format!("the metadata has no stream {stream}"));
        };
        let from = leaves.len();
        if let Some(of) = &declared.packet_context {
            bits.align(of.align());
            bits.read("", of, &mut leaves).map_err(too_short)?;
        }
        let get = |name: &str| number(&leaves[from..], name);
        let content = get("content_size").or(get("packet_size")).unwrap_or(8 * left);
        let size = get("packet_size").unwrap_or(content);
        if size > 8 * MAX_PACKET
            || content > size
            || content < bits.at
            || !size.is_multiple_of(8)
            || size == 0
        {
            return Err(format!("a packet claims {content} bits of content in {size}"));
        }
        let cpu = get("cpu_id").unwrap_or(0).try_into().unwrap_or(u32::MAX);
        Ok(Header {
            stream,
            size,
            content,
            events: bits.at,
            cpu,
            begin: get("timestamp_begin"),
            discarded: get("events_discarded"),
            sequence: get("packet_seq_num"),
        })
    }

    /// Returns the event at the current position; `None` at the end of the packet.
    fn event(&mut self, packet: &[u8]) -> Result<Option<Current>, String> {
        let cut = |_| "an event is cut off or invalid".to_owned();
        let declared = self.declared;
        let Some(stream) = declared.streams.get(&self.id) else { return Ok(None) };
        let mut bits = Bits::new(packet, self.end);
        bits.at = self.at;
        let mut leaves: Vec<Leaf<'_, '_>> = Vec::with_capacity(32);
        let header = stream.event_header.as_ref();
        if let Some(of) = header {
            bits.align(of.align());
            if bits.is_at_end() {
                return Ok(None);
            }
            bits.read("", of, &mut leaves).map_err(cut)?;
        }
        let id = number(&leaves, "id").unwrap_or(0);
        let time = leaves.iter().rev().find_map(|leaf| match (leaf.clock, leaf.value) {
            (Some(bits), Value::Number(value)) => Some((bits, value)),
            _ => None,
        });
        if let Some((bits, value)) = time {
            self.time = later(self.time, bits, value);
        }
        let Some(event) = stream.events.get(&id) else {
            return Err(format!("an event has the number {id}, which the metadata does not have"));
        };
        let contexts = leaves.len();
        for of in [&stream.event_context, &event.context].into_iter().flatten() {
            bits.align(of.align());
            bits.read("", of, &mut leaves).map_err(cut)?;
        }
        let fields = leaves.len();
        if let Some(of) = &event.fields {
            bits.align(of.align());
            bits.read("", of, &mut leaves).map_err(cut)?;
        }
        if bits.at == self.at {
            return Err("an event takes no room".to_owned());
        }
        self.at = bits.at;
        let tid = |name: &str, leaves: &[Leaf<'_, '_>]| number(leaves, name).map(|tid| tid as Tid);
        let by = tid("_tid", &leaves[contexts..fields]).or(tid("tid", &leaves[contexts..fields]));
        let leaves = &leaves[fields..];
        let of_wide = |name: &str| number(leaves, &format!("_{name}")).or(number(leaves, name)).unwrap_or(0);
        let of = |name: &str| of_wide(name) as Tid;
        let mut what = What::Nothing;
        let classes = self.classes;
        match classes.get(self.id, id) {
            Some(class) => {
                class.encode(leaves, &mut self.record);
                what = match class.says {
                    Meaning::Nothing => What::Nothing,
                    Meaning::Switch => What::Switch { from: of("prev_tid"), to: of("next_tid") },
                    Meaning::Call(call) => What::Call(call),
                    Meaning::Return => What::Return(of_wide("ret")),
                    Meaning::Name => {
                        let text = leaves.iter().find_map(|leaf| match leaf.value {
                            Value::Text(text) if leaf.name.trim_start_matches('_') == "name" => Some(text),
                            _ => None,
                        });
                        self.name = String::from_utf8_lossy(text.unwrap_or_default()).replace('\n', " ");
                        What::Name(of("tid"))
                    }
                };
            }
            // There are more kinds of events than event IDs.
            None => self.record.clear(),
        }
        let time = nanoseconds(self.time, &declared.clock);
        Ok(Some(Current { time, by, what }))
    }
}

struct Header {
    stream: u64,
    /// The sizes of the packet and of its content, in bits.
    size: u64,
    content: u64,
    /// The start of its events.
    events: u64,
    cpu: u32,
    begin: Option<u64>,
    discarded: Option<u64>,
    sequence: Option<u64>,
}

/// Returns the first time after `before` with these low bits.
fn later(before: u64, bits: u32, value: u64) -> u64 {
    if bits >= 64 {
        return value;
    }
    let turn = 1_u64 << bits;
    let time = before & !(turn - 1) | value & (turn - 1);
    if time < before { time.saturating_add(turn) } else { time }
}

fn nanoseconds(time: u64, clock: &tsdl::Clock) -> u64 {
    match clock.frequency {
        1_000_000_000 | 0 => time,
        frequency => {
            let ns = u128::from(time) * 1_000_000_000 / u128::from(frequency);
            u64::try_from(ns).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completes_times_of_few_bits() {
        assert_eq!(later(0x1_0000_0010, 27, 0x20), 0x1_0000_0020);
        assert_eq!(later(0x1_0000_0010, 27, 0x08), 0x1_0800_0008);
        assert_eq!(later(7, 64, 3), 3);
        assert_eq!(later(u64::MAX, 27, 0), u64::MAX);
    }

    #[test]
    fn makes_cycles_ns() {
        let clock = |frequency| tsdl::Clock { name: String::new(), frequency };
        assert_eq!(nanoseconds(3_000, &clock(1_000_000_000)), 3_000);
        assert_eq!(nanoseconds(3_000, &clock(1_000_000)), 3_000_000);
        assert_eq!(nanoseconds(u64::MAX, &clock(1)), u64::MAX);
    }
}
