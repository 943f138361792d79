//! The sections of a trace.dat of version 7, written one after the other, and the options that refer to them.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use super::WriteError;
use super::directory::{BufferSource, Directory};
use crate::read::dat::id;

/// The data of each CPU begins at a multiple of that, or of the size of a page of the ring buffer if that is more.
const ALIGNMENT: u64 = 4096;

/// Descriptions of sections, one after the other.
#[derive(Default)]
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, text: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend(text.as_bytes());
        self.0.push(0);
        at
    }
}

/// A file with sections.
pub(super) struct Sections {
    out: File,
    at: u64,
    strings: Strings,
    /// The options written at the end, without the last one.
    options: Vec<u8>,
}

pub(super) fn sized_with_name(name: &str, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u64).to_ne_bytes();
    [name.as_bytes(), b"\0", &length, content].concat()
}

pub(super) fn sized32(content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_ne_bytes(), content].concat()
}

pub(super) fn formats(texts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = (texts.len() as u32).to_ne_bytes().to_vec();
    for text in texts {
        bytes.extend((text.len() as u64).to_ne_bytes());
        bytes.extend(text);
    }
    bytes
}

fn section_head(section: u16, description: u32, length: u64) -> [u8; 16] {
    let mut head = [0; 16];
    head[..2].copy_from_slice(&section.to_ne_bytes());
    head[4..8].copy_from_slice(&description.to_ne_bytes());
    head[8..].copy_from_slice(&length.to_ne_bytes());
    head
}

impl Sections {
    pub(super) fn new(out: File) -> Self {
        Self { out, at: 0, strings: Strings::default(), options: Vec::new() }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn option(&mut self, option: u16, data: &[u8]) {
        self.options.extend(option.to_ne_bytes());
        self.options.extend((data.len() as u32).to_ne_bytes());
        self.options.extend(data);
    }

    pub(super) fn section(&mut self, section: u16, name: &str, content: &[u8]) -> io::Result<()> {
        let offset = self.at.to_ne_bytes();
        self.option(section, &offset);
        let description = self.strings.add(name);
        self.append(&section_head(section, description, content.len() as u64))?;
        self.append(content)
    }

    /// Copies the pages of a buffer, each CPU's from a multiple of the size of a page on.
    pub(super) fn buffer(
        &mut self,
        source: &Directory,
        part: &Path,
        buffer: &BufferSource,
        clock: &str,
        page: usize,
    ) -> Result<(), WriteError> {
        let failed = |error| WriteError::output(part, Some(source.path()), error);
        let section = self.at;
        let description = self.strings.add("buffer flyrecord");
        self.append(&section_head(id::BUFFER, description, 0)).map_err(failed)?;
        let mut option = section.to_ne_bytes().to_vec();
        for text in [&buffer.name, clock] {
            option.extend(text.as_bytes());
            option.push(0);
        }
        option.extend((page as u32).to_ne_bytes());
        option.extend((buffer.cpus.len() as u32).to_ne_bytes());
        for (cpu, path, length) in &buffer.cpus {
            let start = self.at.next_multiple_of(ALIGNMENT.max(page as u64));
            // A page that was cut off when the recorder ended is left out: readers expect whole ones.
            let length = length - length % page as u64;
            if length > 0 {
                self.append(&vec![0; (start - self.at) as usize]).map_err(failed)?;
                let unread = |error| WriteError::Source { path: path.clone(), error };
                let mut pages = io::Read::take(File::open(path).map_err(unread)?, length);
                let copied = io::copy(&mut pages, &mut self.out).map_err(failed)?;
                self.at += copied;
                if copied != length {
                    return Err(unread(ErrorKind::UnexpectedEof.into()));
                }
            }
            option.extend(cpu.to_ne_bytes());
            option.extend(start.to_ne_bytes());
            option.extend(length.to_ne_bytes());
        }
        let length = self.at - section - 16;
        self.out.seek(SeekFrom::Start(section + 8)).map_err(failed)?;
        self.out.write_all(&length.to_ne_bytes()).map_err(failed)?;
        self.out.seek(SeekFrom::Start(self.at)).map_err(failed)?;
        self.option(id::BUFFER, &option);
        Ok(())
    }

    /// Writes the options and the descriptions of sections, and where the former are.
    pub(super) fn end(&mut self, options_at: u64) -> io::Result<()> {
        let options = self.at;
        let description = self.strings.add("options");
        let strings = self.strings.add("strings");
        self.option(id::DONE, &0u64.to_ne_bytes());
        let content = std::mem::take(&mut self.options);
        self.append(&section_head(id::DONE, description, content.len() as u64))?;
        self.append(&content)?;
        let content = std::mem::take(&mut self.strings.0);
        self.append(&section_head(id::STRINGS, strings, content.len() as u64))?;
        self.append(&content)?;
        self.out.seek(SeekFrom::Start(options_at))?;
        self.out.write_all(&options.to_ne_bytes())
    }
}
