//! Version 6: all parts in a fixed order, then the data of each CPU.

use super::id;
use super::metadata::{Metadata, common_option, number, option_content};
use super::reader::Reader;
use crate::read::error::ReadError;
use crate::read::{Buffer, CpuData};

/// The maximum number of buffers besides the first: the options of each may be the same part of the
/// file.
const BUFFERS_LIMIT: usize = 256;

pub(super) fn read(mut reader: Reader, metadata: &mut Metadata) -> Result<(), ReadError> {
    metadata.header_info(&mut reader)?;
    metadata.ftrace_events(&mut reader)?;
    metadata.event_formats(&mut reader)?;
    metadata.symbols(&mut reader)?;
    metadata.printk(&mut reader)?;
    metadata.names(&mut reader)?;
    metadata.cpus = reader.u32()?;
    let mut others = Vec::new();
    let mut kind = reader.array()?;
    if &kind == b"options  \0" {
        loop {
            let option = reader.u16()?;
            if option == id::DONE {
                break;
            }
            let data = option_content(&mut reader, option)?;
            if option == id::BUFFER && data.len() > 8 {
                if others.len() == BUFFERS_LIMIT {
                    return Err(reader.corrupt(format!("there are more than {BUFFERS_LIMIT} buffers")));
                }
                others.push(other_buffer(&reader, &data));
            } else {
                common_option(metadata, reader.order, option, &data);
            }
        }
        kind = reader.array()?;
    }
    buffer(&mut reader, metadata, kind, "", metadata.cpus)?;
    for (offset, name) in others {
        let mut at = Reader::new(metadata.file.clone(), metadata.bytes.clone(), offset, metadata.length);
        at.order = reader.order;
        let mut kind = at.array()?;
        let mut cpus = metadata.cpus;
        // A buffer may have its own options; only the number of CPUs matters.
        if &kind == b"options  \0" {
            loop {
                let option = at.u16()?;
                if option == id::DONE {
                    break;
                }
                let data = option_content(&mut at, option)?;
                if option == id::CPUCOUNT {
                    cpus = at.order.u32(&data, 0).unwrap_or(cpus);
                }
            }
            kind = at.array()?;
        }
        buffer(&mut at, metadata, kind, &name, cpus)?;
    }
    metadata.check_overlaps()
}

/// Returns the offset and name of another buffer.
fn other_buffer(reader: &Reader, data: &[u8]) -> (u64, String) {
    let name = String::from_utf8_lossy(&data[8..]);
    let name = name.split('\0').next().unwrap_or_default().to_owned();
    (number(reader.order, data, 0), name)
}

/// Reads the table that locates the data of each CPU.
fn buffer(
    reader: &mut Reader,
    metadata: &mut Metadata,
    kind: [u8; 10],
    name: &str,
    cpus: u32,
) -> Result<(), ReadError> {
    match &kind {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            let what =
                "this is the text of a latency tracer, which has no events; record with the `nop` tracer";
            let (file, offset) = (metadata.file.clone(), reader.offset());
            return Err(ReadError::Unsupported { file, offset, what: what.to_owned() });
        }
        other => {
            let found = String::from_utf8_lossy(other).into_owned();
            return Err(
                reader.corrupt(format!("`flyrecord` should be here, and `{}` is", found.escape_debug()))
            );
        }
    }
    let cpus = u16::try_from(cpus).map_err(|_| reader.corrupt(format!("the file claims {cpus} CPUs")))?;
    let mut data = Vec::new();
    for cpu in 0..cpus {
        let (start, length) = (reader.u64()?, reader.u64()?);
        if length > 0 {
            let (file, bytes) = (metadata.file.clone(), metadata.bytes.clone());
            data.push(CpuData { cpu, file, bytes, start, length, packed: None });
        }
    }
    let clock = metadata.clock.clone();
    metadata.buffers.push(Buffer { name: name.to_owned(), clock, page_size: None, cpus: data });
    Ok(())
}
