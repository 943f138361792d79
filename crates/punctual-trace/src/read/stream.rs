//! The events of one CPU: pages read in pieces, decoded and translated.

use std::io::{self, Read};
use std::sync::Arc;

use super::Order;
use super::error::{Place, ReadError};
use super::merge::{BATCH, Source};
use super::translate::{SLACK, Translator};
use crate::event::{Event, Kind};
use crate::format::fields::PageLayout;
use crate::format::page::{Cursor, Header, Missed, PageError, PageProblem};

/// Number of events from which on no record is added to a batch: two names may precede a switch.
const FULL: usize = BATCH - 2;
/// Bytes per read, unless the trace has very many CPUs or large pages.
const CHUNK: usize = 256 << 10;
/// The limit for the buffers of all CPUs together.
const BUDGET: usize = 16 << 20;

/// Converts counts of a clock to ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) factor: u32,
    pub(crate) shift: u32,
    pub(crate) offset: u64,
}

impl Scale {
    /// Returns the scale in the format of a trace.dat.
    pub(crate) fn option(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.factor.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.shift.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_ne_bytes());
        bytes
    }

    pub(crate) fn apply(self, time: u64) -> u64 {
        let scaled = (u128::from(time) * u128::from(self.factor)) >> self.shift.min(127);
        // Saturating, so that times stay in order for any content of the file. The offset is in
        // two's complement.
        u64::try_from(scaled).unwrap_or(u64::MAX).saturating_add_signed(self.offset as i64)
    }
}

/// The data of a CPU in a file.
pub(crate) struct Input {
    pub(crate) file: Arc<str>,
    pub(crate) cpu: u16,
    pub(crate) read: Box<dyn Read + Send>,
    /// The offset of the first byte in the file, unless the data is compressed.
    pub(crate) start: Option<u64>,
    /// The expected number of bytes, if known.
    pub(crate) length: Option<u64>,
    pub(crate) scale: Option<Scale>,
}

/// The events of one CPU.
pub(crate) struct CpuStream {
    input: Input,
    layout: PageLayout,
    buffer: Vec<u8>,
    chunk: usize,
    /// The amount of data in `buffer`, and its offset in the data.
    filled: usize,
    base: u64,
    /// The current page and the position in it.
    page: usize,
    cursor: Option<Cursor>,
    last: u64,
    /// An unexpected end of the data, to be reported once the data is used up.
    cut: Option<ReadError>,
    /// The error after the last batch.
    pending: Option<ReadError>,
    ended: bool,
}

/// Returns how much a stream reads at a time, as one of `streams` streams.
fn chunk(page: usize, streams: usize) -> usize {
    let share = (BUDGET / streams.max(1)).min(CHUNK);
    (share / page).max(1) * page
}

impl CpuStream {
    pub(crate) fn new(input: Input, layout: PageLayout, streams: usize) -> Self {
        Self {
            input,
            layout,
            buffer: Vec::new(),
            chunk: chunk(layout.size, streams),
            filled: 0,
            base: 0,
            page: 0,
            cursor: None,
            last: 0,
            cut: None,
            pending: None,
            ended: false,
        }
    }

    fn place(&self, within: usize) -> Place {
        let compressed = self.input.start.is_none();
        let offset = self.input.start.unwrap_or(0) + self.base + (self.page + within) as u64;
        Place { file: self.input.file.clone(), cpu: self.input.cpu, offset, compressed }
    }

    #[cold]
    fn page_error(&self, error: PageError) -> ReadError {
        ReadError::Page { place: self.place(error.offset), error }
    }

    #[cold]
    fn truncated(&self, at: usize) -> ReadError {
        let place = self.place(at - self.page);
        let kind = if place.compressed { "decompressed data" } else { "data" };
        let what = format!("the {kind} of CPU {}", self.input.cpu);
        ReadError::Truncated { file: place.file, offset: place.offset, what }
    }

    /// Reads the next pages. Returns `false` at the end.
    fn read(&mut self) -> Result<bool, ReadError> {
        self.base += self.filled as u64;
        (self.filled, self.page) = (0, 0);
        let length = self.input.length.map_or(self.chunk as u64, |length| length.saturating_sub(self.base));
        let wanted = self.chunk.min(usize::try_from(length).unwrap_or(usize::MAX));
        if self.buffer.len() < wanted + SLACK {
            self.buffer.resize(wanted + SLACK, 0);
        }
        while self.filled < wanted {
            match self.input.read.read(&mut self.buffer[self.filled..wanted]) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It ends in a compressed block.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.cut = Some(self.truncated(self.filled));
                    return Ok(self.filled > 0);
                }
                Err(error) => {
                    let Place { file, offset, .. } = self.place(self.filled);
                    return Err(ReadError::Io { file, offset, error });
                }
            }
        }
        if self.filled < wanted && self.input.length.is_some() {
            // Deliver the data read so far; report the error after that.
            self.cut = Some(self.truncated(self.filled));
        }
        Ok(self.filled > 0)
    }

    /// Advances to the next page, reading if necessary. Returns `false` at the end.
    fn next_page(&mut self, into: &mut Vec<Event>) -> Result<bool, ReadError> {
        if self.page >= self.filled {
            if let Some(error) = self.cut.take() {
                return Err(error);
            }
            if !self.read()? {
                // Not even the first byte is there.
                return self.cut.take().map_or(Ok(false), Err);
            }
        }
        let end = self.filled.min(self.page + self.layout.size);
        let header = match Header::read(&self.layout, &self.buffer[self.page..end]) {
            Ok(header) => header,
            Err(PageError { problem: PageProblem::NoHeader | PageProblem::Overlong { .. }, .. })
                if end < self.page + self.layout.size =>
            {
                return Err(self.truncated(end));
            }
            Err(error) => return Err(self.page_error(error)),
        };
        if header.is_blank(&self.layout) {
            // Moved elsewhere, or never written.
            into.push(Event { time: self.last, cpu: self.input.cpu, by: 0, kind: Kind::Lost { count: 0 } });
        }
        if let Some(missed) = header.missed {
            let count = if let Missed::Count(count) = missed { count } else { 0 };
            // The following events come after it, even if the page contains nothing else.
            self.last = header.time.max(self.last);
            into.push(Event { time: self.last, cpu: self.input.cpu, by: 0, kind: Kind::Lost { count } });
        }
        self.cursor = Some(Cursor::new(&self.layout, &header));
        Ok(true)
    }

    /// Appends the remaining events of the page, up to a batch.
    fn fill_from_page(
        &mut self,
        cursor: Cursor,
        translator: &mut Translator,
        into: &mut Vec<Event>,
    ) -> Result<(), ReadError> {
        match self.layout.order {
            Order::Little => self.fill_in(Order::Little, cursor, translator, into),
            Order::Big => self.fill_in(Order::Big, cursor, translator, into),
        }
    }

    #[inline(always)]
    fn fill_in(
        &mut self,
        order: Order,
        mut cursor: Cursor,
        translator: &mut Translator,
        into: &mut Vec<Event>,
    ) -> Result<(), ReadError> {
        let page = &self.buffer[self.page..];
        let mut last = self.last;
        while into.len() < FULL {
            let Some(record) = cursor.next(order, page).map_err(|error| self.page_error(error))? else {
                self.page += self.layout.size;
                self.cursor = None;
                self.last = last;
                return Ok(());
            };
            if record.time < last {
                return Err(self.backwards(record.offset, record.time, last));
            }
            last = record.time;
            if let Err(error) = translator.translate_in(order, self.input.cpu, &record, into) {
                return Err(ReadError::Record { place: self.place(record.offset), error });
            }
        }
        self.cursor = Some(cursor);
        self.last = last;
        Ok(())
    }

    #[cold]
    fn backwards(&self, offset: usize, time: u64, before: u64) -> ReadError {
        ReadError::Backwards { place: self.place(offset), time, before }
    }

    fn fill(&mut self, translator: &mut Translator, into: &mut Vec<Event>) -> Result<(), ReadError> {
        while into.len() < FULL {
            if let Some(cursor) = self.cursor {
                self.fill_from_page(cursor, translator, into)?;
            } else if !self.next_page(into)? {
                self.ended = true;
                break;
            }
        }
        Ok(())
    }
}

impl Source for CpuStream {
    type Context = Translator;
    type Error = ReadError;

    fn refill(&mut self, translator: &mut Translator, into: &mut Vec<Event>) -> Result<(), ReadError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        if self.ended {
            return Ok(());
        }
        let result = self.fill(translator, into);
        if let Some(scale) = self.input.scale {
            into.iter_mut().for_each(|event| event.time = scale.apply(event.time));
        }
        // Nothing after an error can be delimited. The preceding events are delivered first.
        match result {
            Ok(()) => Ok(()),
            Err(error) => {
                self.ended = true;
                if into.is_empty() {
                    return Err(error);
                }
                self.pending = Some(error);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This many zero bytes, then a truncated compressed block.
    struct CutBlock(usize);

    impl Read for CutBlock {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let count = self.0.min(buffer.len()).min(1_000);
            buffer[..count].fill(0);
            self.0 -= count;
            Ok(count)
        }
    }

    #[test]
    fn returns_whole_pages_of_truncated_block() {
        let layout = PageLayout::usual(4_096);
        // Each page that was never written is a loss.
        for (bytes, pages) in [(0, 0), (4_096, 1), (3 * 4_096, 3), (CHUNK + 4_096, CHUNK / 4_096 + 1)] {
            let read = Box::new(CutBlock(bytes));
            let input = Input { file: "cut".into(), cpu: 1, read, start: None, length: None, scale: None };
            let mut stream = CpuStream::new(input, layout, 1);
            let mut translator = Translator::new(layout.order, &[], &[]);
            let mut events = Vec::new();
            let error = loop {
                let mut batch = Vec::new();
                match stream.refill(&mut translator, &mut batch) {
                    Ok(()) => assert!(!batch.is_empty(), "{bytes} B: the end was not said to be too early"),
                    Err(error) => break error,
                }
                events.append(&mut batch);
            };
            assert_eq!(events.len(), pages, "{bytes} B");
            assert!(events.iter().all(|event| event.kind == Kind::Lost { count: 0 }), "{events:?}");
            assert!(
                matches!(&error, ReadError::Truncated { offset, .. } if *offset == bytes as u64),
                "{bytes} B: {error}"
            );
        }
    }

    #[test]
    fn scaled_times_stay_in_order() {
        let times = [0, 1, 999, 1 << 40, u64::MAX - 1, u64::MAX];
        for offset in [0, 5, 1 << 63, u64::MAX - 7, u64::MAX] {
            for (factor, shift) in [(1, 0), (u32::MAX, 0), (3, 1), (1 << 31, 31), (7, 200)] {
                let scaled = times.map(|time| Scale { factor, shift, offset }.apply(time));
                assert!(scaled.is_sorted(), "{factor} {shift} {offset}: {scaled:?}");
            }
        }
        let earlier = Scale { factor: 1, shift: 1, offset: 10_u64.wrapping_neg() };
        assert_eq!(earlier.apply(100), 40, "an offset may be negative");
    }
}
