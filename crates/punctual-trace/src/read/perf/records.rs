//! Records of the data in sequence, also those inside compressed records.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use ruzstd::decoding::StreamingDecoder;

use super::sample::Fields;
use crate::read::error::ReadError;
use crate::read::expansion::{Unpacked, max_unpacked};
use crate::read::{Bytes, Order, Range};

/// Types of records, by their names in `perf_event.h` and `tools/perf/util/event.h`.
const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_COMM: u32 = 3;
const PERF_RECORD_SAMPLE: u32 = 9;
const PERF_RECORD_LOST_SAMPLES: u32 = 13;
const PERF_RECORD_HEADER_ATTR: u32 = 64;
const PERF_RECORD_HEADER_TRACING_DATA: u32 = 66;
const PERF_RECORD_FINISHED_ROUND: u32 = 68;
const PERF_RECORD_THREAD_MAP: u32 = 73;
const PERF_RECORD_HEADER_FEATURE: u32 = 80;
const PERF_RECORD_COMPRESSED: u32 = 81;
const PERF_RECORD_COMPRESSED2: u32 = 83;

/// Largest size of a record that only contains the length of the formats that follow it.
const TRACING_DATA_HEAD: u64 = 16;
/// Maximum length of a thread's name in bytes; the kernel allows 15.
const MAX_NAME: usize = 64;
/// End of a Zstandard frame: an empty last block. `perf` does not end its frame.
const FRAME_END: &[u8] = &[1, 0, 0];

/// A record.
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
    /// The formats of events are between these offsets, if the header does not locate them.
    Formats(u64, u64),
    /// Describes an event that the header does not describe.
    Attribute(&'a [u8]),
    /// A feature by its number, if the header has no features.
    Feature(usize, &'a [u8]),
    /// Only some threads were recorded, instead of all threads of a CPU.
    OfThreads,
    /// Everything from here on is newer than everything before the previous one of these.
    Round,
    /// It contains other records, compressed.
    Packed,
    Other,
}

/// Reads records in sequence.
pub(super) struct Records {
    order: Order,
    file: Box<dyn Read>,
    at: u64,
    end: u64,
    body: Vec<u8>,
    cut: Option<u64>,
    sample_id: Option<Fields>,
}

impl Records {
    /// Reads the records between two offsets of a file.
    pub(super) fn new(bytes: &Arc<dyn Bytes>, (start, end): (u64, u64), order: Order) -> Self {
        let range = Range::new(bytes.clone(), start, end);
        let file = Box::new(BufReader::with_capacity(256 << 10, range));
        Self { order, file, at: start, end, body: Vec::new(), cut: None, sample_id: None }
    }

    /// Reads the records inside the compressed ones. Offsets are relative to the decompressed data.
    /// `length` is the size of the file.
    pub(super) fn unpacked(self, name: &Arc<str>, length: u64) -> Result<Self, ReadError> {
        let (order, at) = (self.order, self.at);
        let payload = Payload { records: self, content: Vec::new(), used: 0 };
        let decoder = StreamingDecoder::new(payload.chain(FRAME_END)).map_err(|error| {
            let problem = format!("its compressed data cannot be read: {error}");
            ReadError::Corrupt { file: name.clone(), offset: at, problem }
        })?;
        let decoder = Limited { decoder, unpacked: Unpacked::default(), limit: max_unpacked(length) };
        let file = Box::new(BufReader::with_capacity(256 << 10, decoder));
        Ok(Self { order, file, at: 0, end: u64::MAX, body: Vec::new(), cut: None, sample_id: None })
    }

    /// Sets the fields at the end of records other than samples.
    pub(super) fn set_sample_id(&mut self, sample_id: Option<Fields>) {
        self.sample_id = sample_id;
    }

    /// Returns the offset at which the data is cut off, if any.
    pub(super) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Reads the rest of a record; returns `false` if it is cut off.
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

    /// Reads the type and size of a record. Decompressed data ends between records.
    fn start(&mut self, name: &Arc<str>) -> Result<Option<(u32, u16)>, ReadError> {
        if self.at >= self.end {
            return Ok(None);
        }
        let mut first = [0];
        let count = self.file.read(&mut first);
        match count.map_err(|error| ReadError::Io { file: name.clone(), offset: self.at, error })? {
            0 if self.end == u64::MAX => return Ok(None),
            0 => {
                self.cut = Some(self.at);
                return Ok(None);
            }
            _ => {}
        }
        if !self.fill(name, 7)? {
            return Ok(None);
        }
        self.body.insert(0, first[0]);
        let kind = self.order.u32(&self.body, 0).unwrap_or_default();
        let size = self.order.u16(&self.body, 6).unwrap_or_default();
        if size < 8 {
            let problem = format!("a record has a size of {size} bytes");
            return Err(ReadError::Corrupt { file: name.clone(), offset: self.at, problem });
        }
        Ok(Some((kind, size)))
    }

    /// Returns the next record; `None` at the end, or where the data is cut off.
    pub(super) fn next(&mut self, name: &Arc<str>) -> Result<Option<Record<'_>>, ReadError> {
        let Some((kind, size)) = self.start(name)? else { return Ok(None) };
        if !self.fill(name, usize::from(size) - 8)? {
            return Ok(None);
        }
        let content = self.at + 8;
        self.at += u64::from(size);
        if kind == PERF_RECORD_HEADER_TRACING_DATA {
            return self.formats(name, content).map(Some);
        }
        let (order, body) = (self.order, &self.body[..]);
        Ok(Some(match kind {
            PERF_RECORD_SAMPLE => Record::Sample(body),
            // The count is in different places.
            PERF_RECORD_LOST | PERF_RECORD_LOST_SAMPLES => {
                let count = order.u64(body, if kind == PERF_RECORD_LOST { 8 } else { 0 }).unwrap_or_default();
                let (time, cpu) = self.sample_id.map_or((0, None), |fields| fields.place(order, body));
                Record::Lost { count, time, cpu }
            }
            PERF_RECORD_COMM => {
                let thread = order.u32(body, 4).unwrap_or_default();
                let text =
                    body.get(8..).unwrap_or_default().split(|&byte| byte == 0).next().unwrap_or_default();
                let text = &text[..text.len().min(MAX_NAME)];
                Record::Name { thread, name: String::from_utf8_lossy(text).into_owned() }
            }
            PERF_RECORD_HEADER_ATTR => Record::Attribute(body),
            PERF_RECORD_HEADER_FEATURE => {
                let feature = order.u64(body, 0).unwrap_or_default();
                Record::Feature(feature as usize, body.get(8..).unwrap_or_default())
            }
            // The number of threads, then their IDs and names; -1 is all threads.
            PERF_RECORD_THREAD_MAP if order.u64(body, 8).is_some_and(|thread| thread != u64::MAX) => {
                Record::OfThreads
            }
            PERF_RECORD_FINISHED_ROUND => Record::Round,
            PERF_RECORD_COMPRESSED | PERF_RECORD_COMPRESSED2 => Record::Packed,
            _ => Record::Other,
        }))
    }

    /// Formats of events: within their record, as simpleperf writes them, or after it, as perf
    /// writes them into a pipe.
    fn formats(&mut self, name: &Arc<str>, content: u64) -> Result<Record<'_>, ReadError> {
        let length = u64::from(self.order.u32(&self.body, 0).unwrap_or_default());
        let mut start = content + 4;
        if self.at - (content - 8) <= TRACING_DATA_HEAD {
            start = self.at;
            let padded = length.next_multiple_of(8);
            let skipped = io::copy(&mut (&mut self.file).take(padded), &mut io::sink());
            skipped.map_err(|error| ReadError::Io { file: name.clone(), offset: self.at, error })?;
            self.at += padded;
        }
        Ok(Record::Formats(start, start.saturating_add(length).min(self.at)))
    }

    /// Reads the content of the next compressed record; returns `false` at the end.
    fn next_payload(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        let name: Arc<str> = "".into();
        loop {
            let Some((kind, size)) = self.start(&name).map_err(io::Error::other)? else { return Ok(false) };
            if !self.fill(&name, usize::from(size) - 8).map_err(io::Error::other)? {
                return Ok(false);
            }
            let content = self.at + 8;
            self.at += u64::from(size);
            let body = &self.body;
            match kind {
                PERF_RECORD_HEADER_TRACING_DATA => drop(self.formats(&name, content)),
                PERF_RECORD_COMPRESSED => into.clone_from(body),
                // The length precedes the padded content.
                PERF_RECORD_COMPRESSED2 => {
                    let length = self.order.u64(body, 0).unwrap_or_default();
                    let content = body.get(8..).unwrap_or_default();
                    into.clear();
                    into.extend_from_slice(&content[..content.len().min(length as usize)]);
                }
                _ => {}
            }
            if matches!(kind, PERF_RECORD_COMPRESSED | PERF_RECORD_COMPRESSED2) {
                return Ok(true);
            }
        }
    }
}

/// Decompressed data with a limit. The decoder is a block of 128 KiB ahead at most.
struct Limited<R> {
    decoder: R,
    unpacked: Unpacked,
    limit: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.decoder.read(into)?;
        self.unpacked.add(count as u64, self.limit).map_err(io::Error::other)?;
        Ok(count)
    }
}

/// The contents of all compressed records in sequence, which are one Zstandard frame.
struct Payload {
    records: Records,
    content: Vec<u8>,
    used: usize,
}

impl Read for Payload {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.used >= self.content.len() {
            self.used = 0;
            self.content.clear();
            if !self.records.next_payload(&mut self.content)? {
                return Ok(0);
            }
        }
        let count = into.len().min(self.content.len() - self.used);
        into[..count].copy_from_slice(&self.content[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_decompressed_size() {
        let mut limited = Limited { decoder: io::repeat(0), unpacked: Unpacked::default(), limit: 1_000 };
        let error = limited.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("more than 1000 bytes decompressed"), "{error}");
    }
}
