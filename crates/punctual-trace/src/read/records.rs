//! The raw records of a trace, for writers of other files.

use std::io::Read;

use super::error::{Place, ReadError};
use super::expansion::Unpacked;
use super::{Buffer, CpuData, Trace};
use crate::format::fields::FormatError;
use crate::format::page::{Missed, Page};

/// The next item in the data of a CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    /// A record: its time, in ns of the trace clock, and its bytes.
    Record(u64, &'a [u8]),
    /// The number of lost records; 0 if unknown.
    Lost(u64),
}

impl Trace {
    /// Passes on the records of a CPU in a buffer, in order. Stops at an error; the records passed
    /// on before remain usable.
    pub(crate) fn records<E: From<ReadError>>(
        &self,
        buffer: &Buffer,
        data: &CpuData,
        each: &mut dyn FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let unsupported =
            |error: FormatError| ReadError::Format { file: self.file.clone(), offset: 0, error };
        let layout = match buffer.page_size {
            Some(size) => self.layout.with_size(size).map_err(unsupported)?,
            None => self.layout,
        };
        let mut input = data.input(None, &Unpacked::default());
        let mut bytes = vec![0; layout.size];
        let (mut offset, mut last) = (0, 0);
        loop {
            let mut filled = 0;
            while filled < bytes.len() {
                match input.read.read(&mut bytes[filled..]) {
                    Ok(0) => break,
                    Ok(count) => filled += count,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        let (file, offset) = (data.file.clone(), data.start + offset);
                        return Err(ReadError::Io { file, offset, error }.into());
                    }
                }
            }
            if filled == 0 {
                return Ok(());
            }
            let place = |within: usize| Place {
                file: data.file.clone(),
                cpu: data.cpu,
                offset: data.start + offset + within as u64,
                compressed: data.packed.is_some(),
            };
            let wrong =
                |error: crate::format::page::PageError| ReadError::Page { place: place(error.offset), error };
            let mut page = Page::open(&layout, &bytes[..filled]).map_err(wrong)?;
            match page.header().missed {
                Some(Missed::Count(count)) => each(Item::Lost(count))?,
                Some(Missed::Some) => each(Item::Lost(0))?,
                None if page.header().is_blank(&layout) => each(Item::Lost(0))?,
                None => {}
            }
            while let Some(record) = page.next_record().map_err(wrong)? {
                if record.time < last {
                    let place = place(record.offset);
                    return Err(ReadError::Backwards { place, time: record.time, before: last }.into());
                }
                last = record.time;
                each(Item::Record(self.in_ns(buffer, record.time), record.data()))?;
            }
            offset += filled as u64;
        }
    }
}
