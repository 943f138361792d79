//! What a capture directory has for a file.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::WriteError;
use super::content::{Buffer, Content, Group, Pages};
use crate::read::Order;
use crate::read::dat::clock_of;
use crate::read::format::PageLayout;
use crate::read::raw::declared;

/// A capture directory.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    fn required(&self, name: &str) -> Result<Vec<u8>, WriteError> {
        let path = self.path.join(name);
        fs::read(&path).map_err(|error| WriteError::Source { path, error })
    }

    /// The content of a file, nothing if it is not there.
    fn optional(&self, name: &str) -> Result<Vec<u8>, WriteError> {
        match self.required(name) {
            Err(WriteError::Source { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }

    /// The directories in a directory, by name.
    fn entries(&self, name: &str) -> Result<Vec<String>, WriteError> {
        let path = self.path.join(name);
        let failed = |error| WriteError::Source { path: path.clone(), error };
        let directory = match fs::read_dir(&path) {
            Ok(directory) => directory,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in directory {
            let entry = entry.map_err(failed)?;
            if entry.path().is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The formats of events, by group.
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

    /// All that it has.
    pub(super) fn content(&self) -> Result<Content, WriteError> {
        let header_page = self.required("events/header_page")?;
        let layout = PageLayout::parse(&header_page, Order::NATIVE).map_err(|error| WriteError::Source {
            path: self.path.join("events/header_page"),
            error: io::Error::new(ErrorKind::InvalidData, error.to_string()),
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
            return Err(WriteError::Empty { path: self.path.clone() });
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
            let path = self.path.join(format!("{prefix}per_cpu/{entry}/trace_pipe_raw"));
            let length = match fs::metadata(&path) {
                Ok(metadata) => metadata.len(),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(WriteError::Source { path, error }),
            };
            let text = self.optional(&format!("{prefix}per_cpu/{entry}/stats"))?;
            if !text.is_empty() {
                statistics.push(format!("CPU: {cpu}\n{}", String::from_utf8_lossy(&text)));
            }
            cpus.push((cpu, Pages::File(path, length)));
        }
        cpus.sort_by_key(|(cpu, _)| *cpu);
        Ok(Buffer { name, clock: clock.to_owned(), cpus })
    }
}
