//! Completing recordings of killed programs.

use std::io::{self, BufWriter};
use std::path::Path;

use mcap::Attachment;
use mcap::records::Record;

use crate::recording::{new_file, to_io, writer};
use crate::records::{ReadError, Records};

/// The result of [`recover`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The number of messages in the new file.
    pub messages: u64,
    /// The reason why the recording ends there.
    pub damage: String,
}

/// Copies the complete chunks of a recording whose program was killed, or whose machine lost power,
/// to a new file with an index, which every reader of MCAP opens.
///
/// A chunk whose checksum is wrong ends the copy. Memory is bounded by one chunk of at most 64 MiB,
/// and by the index.
///
/// # Errors
/// [`ReadError`]; in that case the new file does not exist, except after an error of writing to it.
pub fn recover(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Recovered, ReadError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let mut records = Records::open(from)?;
    if records.has_index()? {
        return Err(ReadError::Complete(from.into()));
    }
    // Before a file is created.
    if !has_messages(from)? {
        return Err(ReadError::Empty(from.into()));
    }
    let failed = |error: io::Error| ReadError::Write { path: to.into(), error };
    let mut writer = new_file(to).and_then(|file| writer(BufWriter::new(file))).map_err(failed)?;
    let mut messages = 0;
    while let Some(record) = records.next()? {
        let copied = match record {
            Record::Schema { header, data } => {
                writer.add_schema_with_id(header.id, &header.name, &header.encoding, &data).map(drop)
            }
            Record::Channel(channel) => writer
                .add_channel_with_id(
                    channel.id,
                    channel.schema_id,
                    &channel.topic,
                    &channel.message_encoding,
                    &channel.metadata,
                )
                .map(drop),
            Record::Message { header, data } => {
                messages += 1;
                writer.write_to_known_channel(&header, &data)
            }
            Record::Metadata(metadata) => writer.write_metadata(&metadata),
            Record::Attachment { header, data, .. } => writer.attach(&Attachment {
                log_time: header.log_time,
                create_time: header.create_time,
                name: header.name,
                media_type: header.media_type,
                data,
            }),
            // Chunks and indices: the writer creates new ones.
            _ => Ok(()),
        };
        copied.map_err(|error| failed(to_io(error)))?;
    }
    writer.finish().map_err(|error| failed(to_io(error)))?;
    let file = writer.into_inner().into_inner().into_inner().map_err(io::IntoInnerError::into_error);
    file.and_then(|file| file.sync_data()).map_err(failed)?;
    let damage = records.damage().unwrap_or("its index is missing").to_owned();
    Ok(Recovered { messages, damage })
}

/// Returns `true` if the recording contains a message.
fn has_messages(path: &Path) -> Result<bool, ReadError> {
    let mut records = Records::open(path)?;
    while let Some(record) = records.next()? {
        if matches!(record, Record::Message { .. }) {
            return Ok(true);
        }
    }
    Ok(false)
}
