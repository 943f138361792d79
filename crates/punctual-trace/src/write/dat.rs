//! From a capture directory to a trace.dat of version 7.
//!
//! The example of [`write`](crate::write) shows it. Nothing is compressed: the pages are copied by the kernel from file to
//! file. The file appears under its name only when it is complete.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::WriteError;
use super::directory::Directory;
use super::sections::{Sections, formats, sized_with_name, sized32};
use crate::read::Order;
use crate::read::dat::{WRITER, clock_of, id};
use crate::read::format::PageLayout;

/// Writes `file` from the capture directory `directory`, which stays as it is.
pub fn write(directory: &Path, file: &Path) -> Result<(), WriteError> {
    let source = Directory::new(directory);
    let part = part_name(file);
    let result = write_part(&source, &part).and_then(|()| {
        fs::rename(&part, file).map_err(|error| WriteError::output(file, Some(directory), error))
    });
    if result.is_err() {
        // It may have filled the disk, and has nothing that the directory has not. That it cannot be removed would be the
        // second problem, and the first is the one to tell.
        let _ = fs::remove_file(&part);
    }
    result
}

fn part_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn write_part(source: &Directory, part: &Path) -> Result<(), WriteError> {
    let failed = |error| WriteError::output(part, Some(source.path()), error);
    let header_page = source.required("events/header_page")?;
    let layout = PageLayout::parse(&header_page, Order::NATIVE).map_err(|error| WriteError::Source {
        path: source.path().join("events/header_page"),
        error: io::Error::new(ErrorKind::InvalidData, error.to_string()),
    })?;
    let groups = source.groups()?;
    let buffers = source.buffers()?;
    if buffers.iter().all(|buffer| buffer.cpus.is_empty()) {
        return Err(WriteError::Empty { path: source.path().to_owned() });
    }
    let out = File::create(part).map_err(failed)?;
    let mut writer = Sections::new(out);

    let mut start = b"\x17\x08\x44tracing7\0".to_vec();
    start.push(u8::from(Order::NATIVE == Order::Big));
    start.push(size_of::<usize>() as u8);
    start.extend((rustix::param::page_size() as u32).to_ne_bytes());
    start.extend(b"none\0\0");
    let options_at = start.len() as u64;
    start.extend([0; 8]);
    writer.append(&start).map_err(failed)?;

    let header_event = source.optional("events/header_event")?;
    let mut headers = sized_with_name("header_page", &header_page);
    headers.extend(sized_with_name("header_event", &header_event));
    writer.section(id::HEADER_INFO, "headers", &headers).map_err(failed)?;

    let (ftrace, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(name, _)| name == "ftrace");
    let texts: Vec<_> = ftrace.into_iter().flat_map(|(_, texts)| texts).collect();
    writer.section(id::FTRACE_EVENTS, "ftrace events", &formats(&texts)).map_err(failed)?;
    let mut events = (others.len() as u32).to_ne_bytes().to_vec();
    for (name, texts) in &others {
        events.extend(name.as_bytes());
        events.push(0);
        events.extend(formats(texts));
    }
    writer.section(id::EVENT_FORMATS, "events format", &events).map_err(failed)?;
    writer.section(id::KALLSYMS, "kallsyms", &sized32(&source.optional("kallsyms")?)).map_err(failed)?;
    writer.section(id::PRINTK, "printk", &sized32(&source.optional("printk_formats")?)).map_err(failed)?;
    let mut names = source.optional("saved_cmdlines")?;
    names.push(0);
    let mut sized = (names.len() as u64).to_ne_bytes().to_vec();
    sized.extend(names);
    writer.section(id::CMDLINES, "command lines", &sized).map_err(failed)?;

    let cpus = buffers.iter().flat_map(|buffer| buffer.cpus.iter().map(|(cpu, ..)| cpu + 1)).max();
    writer.option(id::CPUCOUNT, &cpus.unwrap_or(0).to_ne_bytes());
    for (option, name) in [(id::TRACECLOCK, "trace_clock"), (id::UNAME, "uname")] {
        let mut text = source.optional(name)?;
        if !text.is_empty() {
            text.push(0);
            writer.option(option, &text);
        }
    }
    let recorded = source.optional("recorded")?;
    if !recorded.is_empty() {
        writer.option(id::VERSION, &[WRITER.as_bytes(), &recorded, b"\0"].concat());
    }
    let clock = String::from_utf8_lossy(&source.optional("trace_clock")?).into_owned();
    for buffer in &buffers {
        for text in &buffer.statistics {
            writer.option(id::CPUSTAT, &[text.as_bytes(), b"\0"].concat());
        }
        writer.buffer(source, part, buffer, clock_of(&clock), layout.size)?;
    }
    writer.end(options_at).map_err(failed)
}
