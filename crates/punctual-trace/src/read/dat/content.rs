//! The contents of a trace.dat, to be written into another one.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::format::Order;
use crate::format::dat::{Buffer, Content, Group, Pages};
use crate::read::error::ReadError;
use crate::read::expansion::Unpacked;
use crate::read::stream::Scale;
use crate::read::{CpuData, Trace};

/// The parts of a file, verbatim.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) header_page: Vec<u8>,
    pub(super) header_event: Vec<u8>,
    pub(super) groups: Vec<Group>,
    pub(super) symbols: Vec<u8>,
    pub(super) printk: Vec<u8>,
}

impl Texts {
    pub(super) fn format(&mut self, system: &str, text: &[u8]) {
        match self.groups.iter_mut().find(|(name, _)| name == system) {
            Some((_, texts)) => texts.push(text.to_owned()),
            None => self.groups.push((system.to_owned(), vec![text.to_owned()])),
        }
    }
}

/// Reads everything in a trace.dat except its pages, and reports damaged parts.
pub(crate) fn content(path: &Path) -> Result<(Content, Vec<String>), ReadError> {
    let bytes = File::open(path).map_err(|error| ReadError::Open { path: path.to_owned(), error })?;
    let mut start = [0; 8];
    let read = crate::read::Bytes::read_at(&bytes, 0, &mut start);
    if read.is_ok_and(|length| crate::read::perf::is_perf(&start[..length])) {
        let what = "this is a perf.data, which `punctual trace report` reads as it is; only a trace.dat is made a trace.dat of";
        return Err(ReadError::Unsupported {
            file: path.display().to_string().into(),
            offset: 0,
            what: what.to_owned(),
        });
    }
    let mut metadata =
        super::load(path.display().to_string().into(), Arc::new(bytes), Some(Texts::default()))?;
    let texts = metadata.texts.take().unwrap_or_default();
    let trace = metadata.finish()?;
    let unsupported = |what: &str| {
        Err(ReadError::Unsupported { file: trace.file.clone(), offset: 0, what: what.to_owned() })
    };
    if trace.layout.order != Order::NATIVE {
        return unsupported("it is from a machine with the other byte order; convert it on such a machine");
    }
    let (mut page, unpacked) = (None, Unpacked::default());
    let mut damage = trace.damage.clone();
    let mut buffers = Vec::new();
    for buffer in &trace.buffers {
        let size = buffer.page_size.unwrap_or(trace.layout.size);
        if *page.get_or_insert(size) != size {
            return unsupported("its buffers have pages of different sizes, which one file cannot contain");
        }
        let mut cpus = Vec::new();
        for data in &buffer.cpus {
            let (length, missing) = length(data, size as u64, &unpacked)?;
            damage.extend(missing);
            cpus.push((data.cpu.into(), Pages::Part(Box::new(data.clone()), length)));
        }
        buffers.push(Buffer { name: buffer.name.clone(), clock: buffer.clock.clone(), cpus });
    }
    let names = trace.threads.strip_suffix(b"\0").unwrap_or(&trace.threads).to_vec();
    let content = Content {
        long: trace.layout.long as u8,
        header_page: texts.header_page,
        header_event: texts.header_event,
        groups: texts.groups,
        symbols: texts.symbols,
        printk: texts.printk,
        names,
        clocks: clocks(&trace),
        system: trace.system.clone().into_bytes(),
        scale: trace.scale.map(Scale::option),
        declared: trace.declared.clone(),
        statistics: trace.statistics.clone(),
        page: page.unwrap_or(trace.layout.size),
        buffers,
    };
    Ok((content, damage))
}

fn clocks(trace: &Trace) -> Vec<u8> {
    match trace.clock.as_str() {
        "" => Vec::new(),
        clock => format!("[{clock}]").into_bytes(),
    }
}

/// Returns how many bytes of complete pages a CPU has when decompressed, with warnings about them.
fn length(data: &CpuData, page: u64, unpacked: &Unpacked) -> Result<(u64, Option<String>), ReadError> {
    let missing = |what: String| Some(format!("of the data of CPU {}, {what}", data.cpu));
    if data.packed.is_some() {
        let mut count = Count(0);
        let result = io::copy(&mut data.input(None, unpacked).read, &mut count);
        let damage = result.err().and_then(|error| missing(format!("the rest is left out: {error}")));
        return Ok((count.0 - count.0 % page, damage));
    }
    let failed = |error| ReadError::Io { file: data.file.clone(), offset: data.start, error };
    let there = data.bytes.length().map_err(failed)?.saturating_sub(data.start).min(data.length);
    let whole = there - there % page;
    let damage = (whole < data.length).then(|| format!("{} bytes are missing", data.length - whole));
    Ok((whole, damage.and_then(missing)))
}

/// Counts the bytes written.
struct Count(u64);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
