//! trace.dat, the file format of `trace-cmd` and KernelShark, in versions 6 and 7.
//!
//! Version 6 is a sequence: formats, symbols, names of threads, options, then the data of each CPU.
//! Version 7 has the same parts in sections anywhere in the file, each of which may be compressed;
//! options contain their offsets, and chunks of pages may also be compressed. Both are read in
//! pieces: the memory use does not depend on the size of the file.
//!
//! ```no_run
//! use punctual_trace::read::Trace;
//!
//! let trace = Trace::open("trace.dat".as_ref())?;
//! assert!(trace.formats().iter().any(|format| format.name == "sched_switch"));
//! # Ok::<(), punctual_trace::read::ReadError>(())
//! ```

mod compressed;
mod content;
mod metadata;
mod reader;
mod salvage;
mod v6;
mod v7;

use std::sync::Arc;

pub(super) use self::compressed::Chunks;
pub(crate) use self::compressed::Packing;
use self::content::Texts;
pub(crate) use self::content::content;
use self::metadata::Metadata;
pub(crate) use self::metadata::{BUDGET_TIMER, Functions};
use self::reader::Reader;
use super::error::ReadError;
use super::{Buffer, Bytes, Order, Trace};
use crate::format::dat::id;
use crate::format::fields::PageLayout;

const MAGIC: [u8; 10] = *b"\x17\x08\x44tracing";

pub(super) fn open(file: Arc<str>, bytes: Arc<dyn Bytes>) -> Result<Trace, ReadError> {
    load(file, bytes, None)?.finish()
}

/// Returns a trace with that buffer and the formats that another file, such as a perf.data, has
/// between these offsets.
pub(super) fn embedded(
    file: Arc<str>,
    bytes: Arc<dyn Bytes>,
    (start, end): (u64, u64),
    (layout, buffer): (PageLayout, Buffer),
) -> Result<Trace, ReadError> {
    let mut reader = Reader::new(file.clone(), bytes.clone(), start, end);
    if reader.array().ok() != Some(MAGIC) {
        let what = "there are no formats of events in it; record tracepoints, such as `perf record -e 'sched:*' -a` or \
                    `perf sched record` does";
        return Err(ReadError::Unsupported { file, offset: start, what: what.to_owned() });
    }
    let version = reader.string("the version", 16)?;
    reader.order = layout.order;
    // Byte order, size of a long, page size.
    reader.array::<2>()?;
    reader.u32()?;
    let mut metadata = Metadata::new(file, bytes, end);
    metadata.header_info(&mut reader)?;
    metadata.ftrace_events(&mut reader)?;
    metadata.event_formats(&mut reader)?;
    metadata.symbols(&mut reader)?;
    metadata.printk(&mut reader)?;
    // Older files have no thread names.
    if version != "0.5" {
        metadata.names(&mut reader)?;
    }
    (metadata.layout, metadata.buffers) = (Some(layout), vec![buffer]);
    metadata.finish()
}

/// Reads everything except the pages, and keeps the parts verbatim in `texts`, if given.
fn load(file: Arc<str>, bytes: Arc<dyn Bytes>, texts: Option<Texts>) -> Result<Metadata, ReadError> {
    let length = bytes.length().map_err(|error| ReadError::Io { file: file.clone(), offset: 0, error })?;
    let mut reader = Reader::new(file.clone(), bytes.clone(), 0, length);
    if reader.array().ok() != Some(MAGIC) {
        return Err(ReadError::NotATrace { file });
    }
    let version = reader.string("the version", 16)?;
    let at = reader.offset();
    let [big, long] = reader.array()?;
    reader.order = match big {
        0 => Order::Little,
        1 => Order::Big,
        other => {
            let problem = format!("the byte order is {other}, but only 0 and 1 are known");
            return Err(ReadError::Corrupt { file, offset: at, problem });
        }
    };
    if ![4, 8].contains(&long) {
        let problem = format!("a long has {long} bytes");
        return Err(ReadError::Corrupt { file, offset: at + 1, problem });
    }
    // The system's page size. The header of the ring buffer contains the size of the buffer's
    // pages.
    reader.u32()?;
    let mut metadata = Metadata::new(file.clone(), bytes, length);
    metadata.texts = texts;
    match version.as_str() {
        "6" => v6::read(reader, &mut metadata)?,
        "7" => v7::read(reader, &mut metadata)?,
        _ => return Err(ReadError::Version { file, version }),
    }
    Ok(metadata)
}
