//! Options: the information about a recording other than its events, in both versions.

use super::metadata::{Metadata, number};
use super::reader::Reader;
use crate::format::Order;
use crate::format::dat::{WRITER, clock_of, id};
use crate::read::error::ReadError;
use crate::read::stream::Scale;

/// An option holds at most a few bytes per CPU, or the text of a statistics file.
const OPTION_LIMIT: u32 = 4 << 20;
/// Statistics of further CPUs are ignored.
const STATISTICS_LIMIT: usize = 4096;

/// Returns the content of the next option, after its ID.
pub(super) fn content(reader: &mut Reader, option: u16) -> Result<Vec<u8>, ReadError> {
    let length = reader.u32()?;
    if length > OPTION_LIMIT {
        return Err(reader.corrupt(format!("option {option} claims {length} bytes")));
    }
    reader.bytes(length.into(), "the options")
}

/// Handles options with the same meaning in both versions; returns whether this was one.
pub(super) fn common(metadata: &mut Metadata, order: Order, option: u16, data: &[u8]) -> bool {
    let text = || String::from_utf8_lossy(data).trim_end_matches(['\0', '\n']).to_owned();
    match option {
        id::CPUSTAT if metadata.statistics.len() < STATISTICS_LIMIT => metadata.statistics.push(text()),
        id::TRACECLOCK => metadata.clock = clock_of(&text()).to_owned(),
        id::UNAME => metadata.system = text(),
        id::VERSION => metadata.declared = text().strip_prefix(WRITER).map(str::to_owned),
        id::CPUCOUNT => metadata.cpus = order.u32(data, 0).unwrap_or(metadata.cpus),
        id::TSC2NSEC if data.len() >= 16 => {
            let half = |at| order.u32(data, at).unwrap_or_default();
            let scale = Scale { factor: half(0), shift: half(4), offset: number(order, data, 8) };
            metadata.scale = (scale.factor != 0).then_some(scale);
        }
        _ => return false,
    }
    true
}
