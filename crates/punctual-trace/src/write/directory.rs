//! What a capture directory has for a file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::WriteError;

/// A capture directory.
pub(super) struct Directory {
    path: PathBuf,
}

/// A ring buffer in it.
pub(super) struct BufferSource {
    pub(super) name: String,
    /// Each CPU, the file with its pages, and how long that is.
    pub(super) cpus: Vec<(u32, PathBuf, u64)>,
    pub(super) statistics: Vec<String>,
}

/// A group of events and the texts of their formats.
pub(super) type Group = (String, Vec<Vec<u8>>);

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn required(&self, name: &str) -> Result<Vec<u8>, WriteError> {
        let path = self.path.join(name);
        fs::read(&path).map_err(|error| WriteError::Source { path, error })
    }

    /// The content of a file, nothing if it is not there.
    pub(super) fn optional(&self, name: &str) -> Result<Vec<u8>, WriteError> {
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
    pub(super) fn groups(&self) -> Result<Vec<Group>, WriteError> {
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

    /// The ring buffers, that of the directory itself first.
    pub(super) fn buffers(&self) -> Result<Vec<BufferSource>, WriteError> {
        let mut buffers = vec![self.buffer(String::new(), "")?];
        for name in self.entries("instances")? {
            let prefix = format!("instances/{name}/");
            buffers.push(self.buffer(name, &prefix)?);
        }
        Ok(buffers)
    }

    fn buffer(&self, name: String, prefix: &str) -> Result<BufferSource, WriteError> {
        let (mut cpus, mut statistics) = (Vec::new(), Vec::new());
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
            cpus.push((cpu, path, length));
        }
        cpus.sort_by_key(|(cpu, ..)| *cpu);
        Ok(BufferSource { name, cpus, statistics })
    }
}
