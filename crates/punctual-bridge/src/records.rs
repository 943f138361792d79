//! Reading recordings from start to end, in bounded memory and without trusting them.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mcap::McapError;
use mcap::records::{Record, op};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

/// The limit of a record and of a chunk, in bytes. Those of a [`Recording`](crate::Recording) have
/// about 64 KiB.
const MAX_RECORD_BYTES: usize = 64 << 20;

/// The footer with its opcode and length, and the magic bytes at the end.
const FOOTER_BYTES: usize = 9 + 20 + 8;

/// The error of reading a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{}: {error}; give the path of a recording", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file is not in the MCAP format.
    #[error("{} is not an MCAP file; give a recording of an app", .0.display())]
    Foreign(PathBuf),
    /// The file has no messages.
    #[error("{} contains no messages; record the app for longer than 250 ms", .0.display())]
    Empty(PathBuf),
    /// The chunks are compressed.
    #[error("{} is compressed; decompress it with `mcap decompress`", .0.display())]
    Compressed(PathBuf),
    /// The file has its index, so there is nothing to recover.
    #[error("{} is complete; use it as it is", .0.display())]
    Complete(PathBuf),
    /// The recovered file cannot be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

/// The records of an MCAP file, up to its summary or to the first one that is damaged or missing.
pub(crate) struct Records {
    path: PathBuf,
    file: BufReader<File>,
    reader: LinearReader,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Reading,
    /// The summary follows: all data was read.
    Complete,
    /// For this reason the rest is lost.
    Damaged(String),
}

impl Records {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let read = || {
            // A FIFO without a writer is rejected rather than waited for.
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
            match file.metadata()?.is_file() {
                true => Ok(file),
                false => Err(io::Error::other("it is not a file")),
            }
        };
        let file = read().map_err(|error| ReadError::Io { path: path.into(), error })?;
        let options = LinearReaderOptions::default()
            .with_skip_end_magic(true)
            .with_prevalidate_chunk_crcs(true)
            .with_record_length_limit(MAX_RECORD_BYTES);
        let reader = LinearReader::new_with_options(options);
        let mut records =
            Self { path: path.into(), file: BufReader::new(file), reader, state: State::Reading };
        match records.next()? {
            Some(Record::Header(_)) => Ok(records),
            _ => Err(ReadError::Foreign(path.into())),
        }
    }

    /// Returns the next record, `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'static>>, ReadError> {
        if self.state != State::Reading {
            return Ok(None);
        }
        let end = loop {
            let record = match self.reader.next_event() {
                None => break State::Damaged("it ends before its index".into()),
                Some(Ok(LinearReadEvent::ReadRequest(length))) => {
                    let read = retry_on_intr(|| self.file.read(self.reader.insert(length)));
                    let read = read.map_err(|error| ReadError::Io { path: self.path.clone(), error })?;
                    self.reader.notify_read(read);
                    continue;
                }
                // A part of the file that was never written consists of zeros.
                Some(Ok(LinearReadEvent::Record { opcode: 0, .. })) => {
                    break State::Damaged("it ends with zeros".into());
                }
                Some(Ok(LinearReadEvent::Record { opcode: op::DATA_END | op::FOOTER, .. })) => {
                    break State::Complete;
                }
                Some(Ok(LinearReadEvent::Record { opcode, data })) => {
                    mcap::parse_record(opcode, data).map(Record::into_owned)
                }
                Some(Err(error)) => Err(error),
            };
            match record {
                Ok(record) => return Ok(Some(record)),
                Err(McapError::BadMagic) => return Err(ReadError::Foreign(self.path.clone())),
                Err(McapError::UnsupportedCompression(_)) => {
                    return Err(ReadError::Compressed(self.path.clone()));
                }
                Err(McapError::UnexpectedEof) => break State::Damaged("it ends within a chunk".into()),
                Err(error) => break State::Damaged(error.to_string()),
            }
        };
        self.state = end;
        Ok(None)
    }

    /// Returns `true` if the file ends as one that was completed: with a footer.
    pub(crate) fn has_index(&mut self) -> Result<bool, ReadError> {
        let mut end = [0; FOOTER_BYTES];
        let mut read = || {
            let position = self.file.stream_position()?;
            let length = self.file.seek(SeekFrom::End(0))?;
            let is_read = length >= end.len() as u64 && {
                self.file.seek(SeekFrom::End(-(end.len() as i64)))?;
                self.file.read_exact(&mut end)?;
                true
            };
            self.file.seek(SeekFrom::Start(position))?;
            Ok(is_read)
        };
        let is_read = read().map_err(|error| ReadError::Io { path: self.path.clone(), error })?;
        Ok(is_read && end[0] == op::FOOTER && end.ends_with(mcap::MAGIC))
    }

    /// Returns the reason if the file ended before its summary.
    pub(crate) fn damage(&self) -> Option<&str> {
        match &self.state {
            State::Damaged(reason) => Some(reason),
            _ => None,
        }
    }
}

fn retry_on_intr<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
