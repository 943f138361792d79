//! Reads the contents of a file from a capture directory.

use std::io::{self, ErrorKind};
use std::path::Path;

use punctual_files::Directory;

use super::WriteError;
use crate::format::Order;
use crate::format::dat::{Buffer, Content, Group, Pages, clock_of, declared};
use crate::format::fields::PageLayout;

/// A capture directory.
pub(super) struct Capture<'a> {
    directory: &'a Directory,
    /// True if its pages are to be moved out of it.
    is_moved: bool,
}

impl<'a> Capture<'a> {
    pub(super) fn new(directory: &'a Directory, is_moved: bool) -> Self {
        Self { directory, is_moved }
    }

    fn failed(&self, name: &str, error: io::Error) -> WriteError {
        WriteError::Source { path: self.directory.path().join(name), error }
    }

    fn required(&self, name: &str) -> Result<Vec<u8>, WriteError> {
        self.directory.read(Path::new(name)).map_err(|error| self.failed(name, error))
    }

    /// Returns the contents of a file; empty if it does not exist.
    fn optional(&self, name: &str) -> Result<Vec<u8>, WriteError> {
        match self.required(name) {
            Err(WriteError::Source { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }

    /// Returns the subdirectories of a directory, by name.
    fn entries(&self, name: &str) -> Result<Vec<String>, WriteError> {
        let names = self.directory.directories(Path::new(name)).map_err(|error| self.failed(name, error))?;
        Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
    }

    /// Returns the formats of events, by group.
    fn groups(&self) -> Result<Vec<Group>, WriteError> {
        let mut groups = Vec::new();
        for group in self.entries("events")? {
            let mut texts = Vec::new();
            for event in self.entries(&format!("events/{group}"))? {
                let text = self.optional(&format!("events/{group}/{event}/format"))?;
                if !text.is_empty() {
                    texts.push(text);
                }
            }
            groups.push((group, texts));
        }
        Ok(groups)
    }

    /// Returns everything in it.
    pub(super) fn content(&self) -> Result<Content, WriteError> {
        let header_page = self.required("events/header_page")?;
        let layout = PageLayout::parse(&header_page, Order::NATIVE).map_err(|error| {
            self.failed("events/header_page", io::Error::new(ErrorKind::InvalidData, error.to_string()))
        })?;
        let clocks = self.optional("trace_clock")?;
        let clock = clock_of(&String::from_utf8_lossy(&clocks)).to_owned();
        let mut statistics = Vec::new();
        let mut buffers = vec![self.buffer(String::new(), "", &clock, &mut statistics)?];
        for name in self.entries("instances")? {
            let prefix = format!("instances/{name}/");
            buffers.push(self.buffer(name, &prefix, &clock, &mut statistics)?);
        }
        if buffers.iter().all(|buffer| buffer.cpus.is_empty()) {
            return Err(WriteError::Empty { path: self.directory.path().to_owned() });
        }
        let (recorded, processes) = (self.optional("recorded")?, self.optional("saved_tgids")?);
        let reservations = self.optional("saved_reservations")?;
        Ok(Content {
            long: size_of::<usize>() as u8,
            header_page,
            header_event: self.optional("events/header_event")?,
            groups: self.groups()?,
            symbols: self.optional("kallsyms")?,
            printk: self.optional("printk_formats")?,
            names: self.optional("saved_cmdlines")?,
            clocks,
            system: self.optional("uname")?,
            scale: None,
            declared: (!recorded.is_empty()).then(|| declared(&recorded, &processes, &reservations)),
            statistics,
            page: layout.size,
            buffers,
        })
    }

    fn buffer(
        &self,
        name: String,
        prefix: &str,
        clock: &str,
        statistics: &mut Vec<String>,
    ) -> Result<Buffer, WriteError> {
        let mut cpus = Vec::new();
        for entry in self.entries(&format!("{prefix}per_cpu"))? {
            let Some(cpu) = entry.strip_prefix("cpu").and_then(|number| number.parse().ok()) else {
                continue;
            };
            let name = format!("{prefix}per_cpu/{entry}/trace_pipe_raw");
            let file = match self.directory.open_file(Path::new(&name), self.is_moved) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(self.failed(&name, error)),
            };
            let length = file.metadata().map_err(|error| self.failed(&name, error))?.len();
            let path = self.directory.path().join(name);
            let text = self.optional(&format!("{prefix}per_cpu/{entry}/stats"))?;
            if !text.is_empty() {
                statistics.push(format!("CPU: {cpu}\n{}", String::from_utf8_lossy(&text)));
            }
            cpus.push((cpu, Pages::File(file, path, length)));
        }
        cpus.sort_by_key(|(cpu, _)| *cpu);
        Ok(Buffer { name, clock: clock.to_owned(), cpus })
    }
}
