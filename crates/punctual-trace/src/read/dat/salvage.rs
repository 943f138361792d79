//! Salvages the readable parts of a version 7 file without the options that locate everything.
//!
//! `trace-cmd` writes the options at the end of a file, so a truncated file lacks them, as does the
//! file of a recorder that was interrupted. But sections follow each other and contain their ID and
//! length, and pages contain their times: where the times go back, the pages of the next CPU begin.

use super::compressed::BLOCK_LIMIT;
use super::id;
use super::metadata::Metadata;
use super::reader::Reader;
use super::v7::{COMPRESSED, Container, SECTION_HEAD};
use crate::format::fields::PageLayout;
use crate::format::page::Page;
use crate::read::error::ReadError;
use crate::read::{Buffer, CpuData};

/// The pages of each CPU begin at a multiple of at least this.
const ALIGNMENT: u64 = 4096;
/// More than Linux supports.
const CPUS_LIMIT: usize = 8192;
/// Files have a dozen sections, and one or two per buffer.
const SECTIONS_LIMIT: usize = 4096;

/// Reads sections in sequence from `at` on, and guesses the CPU of the pages. Must be called before
/// anything else is read.
pub(super) fn read(container: &Container, metadata: &mut Metadata, mut at: u64) -> Result<(), ReadError> {
    let mut buffers = Vec::new();
    for _ in 0..SECTIONS_LIMIT {
        let Ok((section, flags, length)) = head(container, metadata, at) else { break };
        let end = at.saturating_add(SECTION_HEAD).saturating_add(length);
        let compressed = flags & COMPRESSED != 0;
        match section {
            id::BUFFER => buffers.push((at + SECTION_HEAD, length, compressed)),
            _ if end > metadata.length => break,
            id::DONE => {
                // The content of options other than offsets.
                let (mut options, _) = container.section(metadata, at, id::DONE)?;
                let _ = container.options(&mut options, metadata);
            }
            id::HEADER_INFO..=id::CMDLINES => container.part(metadata, section, at)?,
            id::STRINGS => {}
            _ => break,
        }
        if section == id::BUFFER && (length == 0 || end > metadata.length) {
            break;
        }
        at = end;
    }
    // Options that survived may also have located buffers, and more reliably.
    if !metadata.buffers.is_empty() {
        return Ok(());
    }
    let Some(layout) = metadata.layout else { return Ok(()) };
    for (start, length, compressed) in buffers {
        let end =
            if length == 0 { metadata.length } else { metadata.length.min(start.saturating_add(length)) };
        let first = start.next_multiple_of(ALIGNMENT.max(layout.size as u64));
        let cpus = match compressed {
            true => packed_lanes(container, metadata, (first, end))?,
            false => lanes(metadata, &layout, first, end)?,
        };
        let clock = metadata.clock.clone();
        let name = if metadata.buffers.is_empty() {
            String::new()
        } else {
            format!("buffer {}", metadata.buffers.len())
        };
        metadata.buffers.push(Buffer { name, clock, page_size: None, cpus });
    }
    Ok(())
}

fn head(container: &Container, metadata: &Metadata, at: u64) -> Result<(u16, u16, u64), ReadError> {
    let mut reader = Reader::new(metadata.file.clone(), metadata.bytes.clone(), at, metadata.length);
    reader.order = container.order;
    let (section, flags) = (reader.u16()?, reader.u16()?);
    let (_description, length) = (reader.u32()?, reader.u64()?);
    Ok((section, flags, length))
}

/// Returns the chunks from `at` to `end`, by CPU: their number precedes them, and they begin where
/// a page would.
fn packed_lanes(
    container: &Container,
    metadata: &Metadata,
    (mut at, end): (u64, u64),
) -> Result<Vec<CpuData>, ReadError> {
    let packed = Some(container.packing(metadata, at)?);
    let mut cpus = Vec::new();
    while at < end && cpus.len() < CPUS_LIMIT {
        let start = at;
        // The file may end in the last one, which is reported when its pages are read.
        let Some(after) = past_chunks(container, metadata, at) else { break };
        let (cpu, file, bytes) = (cpus.len() as u16, metadata.file.clone(), metadata.bytes.clone());
        cpus.push(CpuData { cpu, file, bytes, start, length: metadata.length - start, packed });
        at = after.next_multiple_of(ALIGNMENT);
    }
    Ok(cpus)
}

/// Returns the end of the chunks that begin at `at`, which may be beyond the end of the file;
/// `None` if there are no chunks.
fn past_chunks(container: &Container, metadata: &Metadata, mut at: u64) -> Option<u64> {
    let number = |at: u64| {
        let mut reader = Reader::new(metadata.file.clone(), metadata.bytes.clone(), at, metadata.length);
        reader.order = container.order;
        reader.u32()
    };
    let count = number(at).ok().filter(|&count| count > 0)?;
    at += 4;
    for _ in 0..count {
        // Its length, its decompressed length, and its content.
        let Ok(length) = number(at) else { return Some(metadata.length) };
        if length > BLOCK_LIMIT {
            return None;
        }
        at = at.saturating_add(8).saturating_add(length.into());
    }
    Some(at)
}

/// Returns the pages from `at` to `end`, by CPU.
fn lanes(metadata: &Metadata, layout: &PageLayout, mut at: u64, end: u64) -> Result<Vec<CpuData>, ReadError> {
    let mut cpus: Vec<CpuData> = Vec::new();
    let mut page = vec![0; layout.size];
    let mut last = u64::MAX;
    while at < end {
        let here = page.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        let mut read = 0;
        while read < here {
            match metadata.bytes.read_at(at + read as u64, &mut page[read..here]) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) => return Err(ReadError::Io { file: metadata.file.clone(), offset: at, error }),
            }
        }
        if read == 0 {
            break;
        }
        if let Ok(mut page) = Page::open(layout, &page[..read]) {
            let header = *page.header();
            if !header.is_blank(layout) {
                if header.time < last {
                    if cpus.len() == CPUS_LIMIT {
                        break;
                    }
                    let (cpu, file, bytes) =
                        (cpus.len() as u16, metadata.file.clone(), metadata.bytes.clone());
                    cpus.push(CpuData { cpu, file, bytes, start: at, length: 0, packed: None });
                }
                last = header.time;
                while let Ok(Some(record)) = page.next_record() {
                    last = record.time;
                }
            }
        }
        if let Some(cpu) = cpus.last_mut() {
            cpu.length += read as u64;
        }
        at += layout.size as u64;
    }
    Ok(cpus)
}
