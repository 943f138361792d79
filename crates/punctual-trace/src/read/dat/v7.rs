//! Version 7: sections anywhere in the file, found through options.

use std::collections::BTreeSet;

use super::compressed::{Algorithm, BLOCK_LIMIT};
use super::metadata::Metadata;
use super::reader::Reader;
use super::{id, options};
use crate::read::Order;
use crate::read::error::ReadError;
use crate::read::trace::{Buffer, CpuData};

/// Flag of a section that is compressed.
const COMPRESSED: u16 = 1;
/// A file has two or three sections of options, and one more for each time that it was added to.
const OPTIONS_LIMIT: usize = 1024;

/// What the start of the file says about the rest.
struct Container {
    order: Order,
    /// The name of the algorithm, which only matters if something is compressed.
    algorithm: String,
}

pub(super) fn read(mut reader: Reader, metadata: &mut Metadata) -> Result<(), ReadError> {
    let algorithm = reader.string("the name of the compression", 64)?;
    reader.string("the version of the compression", 256)?;
    let container = Container { order: reader.order, algorithm };
    let mut next = reader.u64()?;
    let mut seen = BTreeSet::new();
    let mut sections = Vec::new();
    let mut buffers = Vec::new();
    while next != 0 {
        if !seen.insert(next) || seen.len() > OPTIONS_LIMIT {
            let problem = "the sections of options refer to each other without end".to_owned();
            return Err(ReadError::Corrupt { file: metadata.file.clone(), offset: next, problem });
        }
        let (mut section, _) = container.section(metadata, next, id::DONE)?;
        next = loop {
            let option = section.u16()?;
            let data = options::content(&mut section, option)?;
            match option {
                id::DONE => break container.order.u64(&data, 0).unwrap_or(0),
                id::HEADER_INFO..=id::CMDLINES => {
                    let offset = container.order.u64(&data, 0);
                    let offset =
                        offset.ok_or_else(|| section.corrupt(format!("option {option} is too short")))?;
                    sections.push((option, offset));
                }
                id::BUFFER => buffers.push((section.offset(), data)),
                _ => {
                    options::common(metadata, container.order, option, &data);
                }
            }
        };
    }
    // The order in which they are read is that of their numbers: formats first, and each of them once.
    sections.sort_unstable();
    sections.dedup_by_key(|(option, _)| *option);
    for (option, offset) in sections {
        let (mut section, _) = container.section(metadata, offset, option)?;
        match option {
            id::HEADER_INFO => metadata.header_info(&mut section)?,
            id::FTRACE_EVENTS => metadata.ftrace_events(&mut section)?,
            id::EVENT_FORMATS => metadata.event_formats(&mut section)?,
            id::KALLSYMS => metadata.symbols(&mut section)?,
            id::CMDLINES => metadata.names(&mut section)?,
            _ => {}
        }
    }
    for (offset, data) in buffers {
        container.buffer(metadata, offset, data)?;
    }
    Ok(())
}

impl Container {
    /// What follows the header of the section at `offset`, decompressed, and its flags.
    fn section(&self, metadata: &Metadata, offset: u64, expected: u16) -> Result<(Reader, u16), ReadError> {
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
            return Err(reader.corrupt(format!("a compressed section says to have {packed} bytes")));
        }
        let bytes = reader.bytes(packed.into(), "a compressed section")?;
        let content = self.algorithm(metadata, offset)?.unpack(&bytes, unpacked);
        let content =
            content.map_err(|problem| ReadError::Corrupt { file: metadata.file.clone(), offset, problem })?;
        Ok((Reader::unpacked(metadata.file.clone(), content, offset, self.order), flags))
    }

    /// Reads the header of the section at `offset`: what follows, its flags, and its length.
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

    fn algorithm(&self, metadata: &Metadata, offset: u64) -> Result<Algorithm, ReadError> {
        Algorithm::by_name(&self.algorithm).ok_or_else(|| {
            let what = format!(
                "this is compressed with `{}`, and zstd and zlib can be read; convert the file with `trace-cmd convert \
                 --compression none`",
                self.algorithm.escape_debug()
            );
            ReadError::Unsupported { file: metadata.file.clone(), offset, what }
        })
    }

    /// A buffer and where the data of its CPUs is, from the option at `offset`.
    fn buffer(&self, metadata: &mut Metadata, offset: u64, data: Vec<u8>) -> Result<(), ReadError> {
        let mut option = Reader::unpacked(metadata.file.clone(), data, offset, self.order);
        let section = option.u64()?;
        let name = option.string("the name of a buffer", 4096)?;
        let clock = option.string("the clock of a buffer", 256)?;
        let page_size = option.u32()?;
        let count = option.u32()?;
        let (_, flags, _) = self.header(metadata, section, id::BUFFER)?;
        let packed = match flags & COMPRESSED {
            0 => None,
            _ => Some((self.algorithm(metadata, section)?, self.order)),
        };
        let mut cpus = Vec::new();
        for _ in 0..count {
            let (cpu, start, length) = (option.u32()?, option.u64()?, option.u64()?);
            let cpu = u16::try_from(cpu)
                .map_err(|_| option.corrupt(format!("the buffer `{name}` has data of a CPU {cpu}")))?;
            // The length of compressed data leaves out the heads of its chunks; their number says where it ends.
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
