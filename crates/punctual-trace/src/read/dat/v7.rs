//! Version 7: sections anywhere in the file, found through options.

use std::collections::{BTreeMap, BTreeSet};

use super::compressed::{Algorithm, BLOCK_LIMIT, Packing};
use super::metadata::{Metadata, common_option, option_content};
use super::reader::Reader;
use super::{id, salvage};
use crate::format::Order;
use crate::read::error::ReadError;
use crate::read::expansion::max_unpacked;
use crate::read::{Buffer, CpuData};

/// The flag of a compressed section.
pub(super) const COMPRESSED: u16 = 1;
/// The size of a section header: ID, flags, description and length.
pub(super) const SECTION_HEAD: u64 = 16;
/// Files have two or three option sections, plus one for each time they were appended to.
const OPTIONS_LIMIT: usize = 1024;
/// Each instance of the tracing directory has a buffer.
const BUFFERS_LIMIT: usize = 1024;
/// Data of CPUs in all buffers together: those of 64 buffers of 1024 CPUs.
const DATA_LIMIT: usize = 1 << 16;

/// The locations in options.
#[derive(Default)]
pub(super) struct Found {
    /// The first offset of each section, by ID.
    sections: BTreeMap<u16, u64>,
    buffers: Vec<(u64, Vec<u8>)>,
    /// The offset of the next options, or 0.
    next: u64,
}

impl Found {
    fn add(&mut self, section: u16, offset: u64) {
        let first = self.sections.entry(section).or_insert(offset);
        *first = offset.min(*first);
    }
}

/// The information about the rest of the file at its start.
pub(super) struct Container {
    pub(super) order: Order,
    /// The name of the algorithm; it matters only if something is compressed.
    algorithm: String,
}

pub(super) fn read(mut reader: Reader, metadata: &mut Metadata) -> Result<(), ReadError> {
    let algorithm = reader.string("the name of the compression", 64)?;
    reader.string("the version of the compression", 256)?;
    let container = Container { order: reader.order, algorithm };
    let options = reader.u64()?;
    let sections = reader.offset();
    let error = match container.indexed(metadata, options) {
        Ok(()) if !metadata.buffers.is_empty() => return Ok(()),
        Ok(()) => metadata.missing("the place of the pages"),
        Err(error @ (ReadError::Truncated { .. } | ReadError::Corrupt { .. })) => error,
        Err(error) => return Err(error),
    };
    metadata.restart();
    match salvage::read(&container, metadata, sections) {
        Ok(()) if metadata.buffers.iter().any(|buffer| !buffer.cpus.is_empty()) => {
            metadata.damage.push(format!(
                "its index is missing or damaged, so pages were looked for; which CPU each is of is guessed ({error})"
            ));
            Ok(())
        }
        // Everything else that is missing follows from the first error.
        _ => Err(error),
    }
}

impl Container {
    /// Reads the parts to which the options at `next` refer.
    fn indexed(&self, metadata: &mut Metadata, mut next: u64) -> Result<(), ReadError> {
        let mut seen = BTreeSet::new();
        let mut found = Found::default();
        while next != 0 {
            if !seen.insert(next) || seen.len() > OPTIONS_LIMIT {
                let problem = "the sections of options refer to each other without end".to_owned();
                return Err(ReadError::Corrupt { file: metadata.file.clone(), offset: next, problem });
            }
            let (mut section, _) = self.section(metadata, next, id::DONE)?;
            let more = self.options(&mut section, metadata)?;
            next = more.next;
            more.sections.into_iter().for_each(|(option, offset)| found.add(option, offset));
            found.buffers.extend(more.buffers);
        }
        // Sections are read in the order of their IDs: formats first, each once.
        for (option, offset) in found.sections {
            self.part(metadata, option, offset)?;
        }
        for (offset, data) in found.buffers {
            self.buffer(metadata, offset, data)?;
        }
        metadata.check_overlaps()
    }

    /// Reads options. Everything except offsets goes to `metadata`.
    pub(super) fn options(&self, section: &mut Reader, metadata: &mut Metadata) -> Result<Found, ReadError> {
        let mut found = Found::default();
        loop {
            let option = section.u16()?;
            let data = option_content(section, option)?;
            match option {
                id::DONE => {
                    found.next = self.order.u64(&data, 0).unwrap_or(0);
                    return Ok(found);
                }
                id::HEADER_INFO..=id::CMDLINES => {
                    let offset = self.order.u64(&data, 0);
                    let offset =
                        offset.ok_or_else(|| section.corrupt(format!("option {option} is too short")))?;
                    found.add(option, offset);
                }
                id::BUFFER => {
                    found.buffers.push((section.offset(), data));
                    if found.buffers.len() > BUFFERS_LIMIT {
                        return Err(section.corrupt(format!("there are more than {BUFFERS_LIMIT} buffers")));
                    }
                }
                _ => {
                    common_option(metadata, self.order, option, &data);
                }
            }
        }
    }

    /// Reads the section at `offset` if it is one that every file has.
    pub(super) fn part(&self, metadata: &mut Metadata, option: u16, offset: u64) -> Result<(), ReadError> {
        let (mut section, _) = self.section(metadata, offset, option)?;
        match option {
            id::HEADER_INFO => metadata.header_info(&mut section),
            id::FTRACE_EVENTS => metadata.ftrace_events(&mut section),
            id::EVENT_FORMATS => metadata.event_formats(&mut section),
            id::KALLSYMS => metadata.symbols(&mut section),
            id::PRINTK => metadata.printk(&mut section),
            id::CMDLINES => metadata.names(&mut section),
            _ => Ok(()),
        }
    }

    /// Returns the decompressed content of the section at `offset`, and its flags.
    pub(super) fn section(
        &self,
        metadata: &Metadata,
        offset: u64,
        expected: u16,
    ) -> Result<(Reader, u16), ReadError> {
        let (mut reader, flags, length) = self.header(metadata, offset, expected)?;
        if flags & COMPRESSED == 0 {
            let start = reader.offset();
            let end = start.saturating_add(length).min(metadata.length);
            let mut section = Reader::new(metadata.file.clone(), metadata.bytes.clone(), start, end);
            section.order = self.order;
            return Ok((section, flags));
        }
        let (packed, unpacked) = (reader.u32()?, reader.u32()?);
        if packed > BLOCK_LIMIT {
            return Err(reader.corrupt(format!("a compressed section claims {packed} bytes")));
        }
        let bytes = reader.bytes(packed.into(), "a compressed section")?;
        let limit = max_unpacked(metadata.length);
        let algorithm = self.algorithm(metadata, offset)?;
        let content = algorithm.unpack(&bytes, unpacked, &metadata.unpacked, limit);
        let content =
            content.map_err(|problem| ReadError::Corrupt { file: metadata.file.clone(), offset, problem })?;
        Ok((Reader::unpacked(metadata.file.clone(), content, offset, self.order), flags))
    }

    /// Reads the header of the section at `offset`; returns a reader of its content, its flags, and
    /// its length.
    fn header(
        &self,
        metadata: &Metadata,
        offset: u64,
        expected: u16,
    ) -> Result<(Reader, u16, u64), ReadError> {
        let mut reader = Reader::new(metadata.file.clone(), metadata.bytes.clone(), offset, metadata.length);
        reader.order = self.order;
        let (section, flags) = (reader.u16()?, reader.u16()?);
        let (_description, length) = (reader.u32()?, reader.u64()?);
        if section != expected {
            let problem = format!("section {expected} should begin here, and section {section} does");
            return Err(ReadError::Corrupt { file: metadata.file.clone(), offset, problem });
        }
        Ok((reader, flags, length))
    }

    /// Returns the compression algorithm.
    pub(super) fn algorithm(&self, metadata: &Metadata, offset: u64) -> Result<Algorithm, ReadError> {
        Algorithm::by_name(&self.algorithm).ok_or_else(|| {
            let what = format!(
                "this is compressed with `{}`, and zstd and zlib can be read; convert the file with `trace-cmd convert \
                 --compression none`",
                self.algorithm.escape_debug()
            );
            ReadError::Unsupported { file: metadata.file.clone(), offset, what }
        })
    }

    /// Returns the encoding of compressed pages.
    pub(super) fn packing(&self, metadata: &Metadata, offset: u64) -> Result<Packing, ReadError> {
        let algorithm = self.algorithm(metadata, offset)?;
        Ok(Packing { algorithm, order: self.order, limit: max_unpacked(metadata.length) })
    }

    /// Adds a buffer with the location of its CPUs' data, from the option at `offset`.
    fn buffer(&self, metadata: &mut Metadata, offset: u64, data: Vec<u8>) -> Result<(), ReadError> {
        let mut option = Reader::unpacked(metadata.file.clone(), data, offset, self.order);
        let section = option.u64()?;
        let name = option.string("the name of a buffer", 4096)?;
        let clock = option.string("the clock of a buffer", 256)?;
        let page_size = option.u32()?;
        let count = option.u32()?;
        let flags = match self.header(metadata, section, id::BUFFER) {
            Ok((_, flags, _)) => flags,
            // All of it is cut off, which is reported when it is read; earlier buffers are intact.
            Err(ReadError::Truncated { .. }) => 0,
            Err(error) => return Err(error),
        };
        let packed = match flags & COMPRESSED {
            0 => None,
            _ => Some(self.packing(metadata, section)?),
        };
        let others: usize = metadata.buffers.iter().map(|buffer| buffer.cpus.len()).sum();
        if others.saturating_add(count as usize) > DATA_LIMIT {
            return Err(option.corrupt(format!("the buffers have the data of more than {DATA_LIMIT} CPUs")));
        }
        let mut cpus = Vec::new();
        for _ in 0..count {
            let (cpu, start, length) = (option.u32()?, option.u64()?, option.u64()?);
            let cpu = u16::try_from(cpu)
                .map_err(|_| option.corrupt(format!("the buffer `{name}` has data of a CPU {cpu}")))?;
            // The length of compressed data excludes the chunk headers; the number of chunks
            // determines its end.
            let length = match packed {
                Some(_) if length > 0 => metadata.length.saturating_sub(start),
                _ => length,
            };
            if length > 0 {
                let (file, bytes) = (metadata.file.clone(), metadata.bytes.clone());
                cpus.push(CpuData { cpu, file, bytes, start, length, packed });
            }
        }
        if metadata.clock.is_empty() {
            metadata.clock.clone_from(&clock);
        }
        metadata.buffers.push(Buffer { name, clock, page_size: Some(page_size as usize), cpus });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn rejects_more_buffers_than_a_machine_has() {
        let container = Container { order: Order::Little, algorithm: String::new() };
        let mut metadata = Metadata::new("x.dat".into(), Arc::new(Vec::new()), 0);
        let mut read = |count: usize| {
            // The ID and the length of each option.
            let buffers = [id::BUFFER as u8, 0, 0, 0, 0, 0].repeat(count);
            let end = [id::DONE as u8, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            let content = [&buffers[..], &end].concat();
            let mut section = Reader::unpacked("x.dat".into(), content, 0, Order::Little);
            container.options(&mut section, &mut metadata).map(|found| found.buffers.len())
        };
        assert_eq!(read(BUFFERS_LIMIT).unwrap(), BUFFERS_LIMIT);
        let error = read(BUFFERS_LIMIT + 1).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("more than 1024 buffers"), "{error}");
    }
}
